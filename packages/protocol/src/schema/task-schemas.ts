import { QUESTION_ID, TASK_ENDS, TASK_STATES } from '../payload/tasks.ts'
import { closed, id, integer, published } from './vocabulary.ts'

// What the built-in capabilities of tasks take and give. The readers in ../payload/tasks.ts accept the same.

const anything = {}
const state = { enum: TASK_STATES } as const
const questionId = { type: 'string', pattern: QUESTION_ID.source } as const
const fraction = { type: 'number', minimum: 0, maximum: 1 } as const
const note = { type: 'string' } as const
const question = {
  type: 'object',
  properties: { question_id: questionId, data: anything },
  required: ['question_id', 'data'],
} as const

/** Events of one type have these fields; they are open, as a newer peer may say more. */
const eventOf = (type: string, properties: object, required: readonly string[]) => ({
  if: { properties: { type: { const: type } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { properties, required },
})

const event = {
  type: 'object',
  properties: { n: integer(1), at: integer(0), type: { type: 'string' } },
  required: ['n', 'at', 'type'],
  allOf: [
    eventOf('state', { state }, ['state']),
    eventOf('progress', { fraction, note }, ['fraction']),
    eventOf('partial', { data: anything }, ['data']),
    eventOf('question', question.properties, question.required),
    eventOf('answered', { question_id: questionId }, ['question_id']),
    eventOf('snapshot', { state, fraction, note, questions: { type: 'array', items: question } }, [
      'state',
      'questions',
    ]),
    eventOf('end', { state: { enum: TASK_ENDS }, message_type: { enum: ['response', 'error'] }, payload: anything }, [
      'state',
      'message_type',
      'payload',
    ]),
  ],
} as const

export const TASK_WATCH_SCHEMA = published(
  'task_watch',
  'Input of hermes.task.watch',
  closed({ task_id: id('task_id'), after: integer(0) }, ['task_id', 'after']),
)

/** Numbers of events grow, which a schema cannot say: the reader holds them to it. */
export const TASK_NEWS_SCHEMA = published('task_news', 'Output of hermes.task.watch', {
  type: 'object',
  properties: { task_id: id('task_id'), state, last: integer(0), events: { type: 'array', items: event } },
  required: ['task_id', 'state', 'events'],
} as const)

export const TASK_INPUT_SCHEMA = published(
  'task_input',
  'Input of hermes.task.input: the answer to a question',
  closed({ task_id: id('task_id'), question_id: questionId, answer: anything }, ['task_id', 'question_id', 'answer']),
)

export const TASK_CANCEL_SCHEMA = published(
  'task_cancel',
  'Input of hermes.task.cancel',
  closed({ task_id: id('task_id') }, ['task_id']),
)
