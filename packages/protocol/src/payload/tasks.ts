import { ID_PATTERNS } from '../names.ts'
import { checkInteger, checkPattern, objectOf, refuse } from './fields.ts'
import type { JsonObject, JsonValue } from './value.ts'

/** Where a task stands. `submitted` is the caller's own view while nobody has acknowledged it, and never travels. */
export type TaskState = 'accepted' | 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled' | 'interrupted'

export const TASK_ENDS = ['completed', 'failed', 'cancelled', 'interrupted'] as const satisfies readonly TaskState[]
export const TASK_STATES = [
  'accepted',
  'working',
  'input_required',
  ...TASK_ENDS,
] as const satisfies readonly TaskState[]

const STATES: ReadonlySet<unknown> = new Set(TASK_STATES)
const ENDS: ReadonlySet<unknown> = new Set(TASK_ENDS)

/** Whether nothing more happens to a task in that state. */
export function isTaskEnd(state: TaskState): boolean {
  return ENDS.has(state)
}

/** A question that waits for its answer. */
export interface TaskQuestion {
  readonly question_id: string
  readonly data: JsonValue
}

/**
 * What has happened to a task, numbered upwards without gaps: from 1, and by an agent that a task was handed on to from 10^9 times
 * the hops that it came by, plus 1, so that one number goes on through all that had it. `at` is the provider's wall clock, ms.
 */
export type TaskEvent = { readonly n: number; readonly at: number } & (
  | { readonly type: 'state'; readonly state: TaskState }
  | { readonly type: 'progress'; readonly fraction: number; readonly note?: string }
  | { readonly type: 'partial'; readonly data: JsonValue }
  | ({ readonly type: 'question' } & TaskQuestion)
  | { readonly type: 'answered'; readonly question_id: string }
  /** Everything up to `n` folded into what of it still counts. */
  | {
      readonly type: 'snapshot'
      readonly state: TaskState
      readonly fraction?: number
      readonly note?: string
      readonly partial?: JsonValue
      readonly questions: readonly TaskQuestion[]
    }
  /** `payload` is that of the `response` or `error` that a request would have been answered with. */
  | {
      readonly type: 'end'
      readonly state: TaskState
      readonly message_type: 'response' | 'error'
      readonly payload: JsonValue
    }
)

/** Input of `hermes.task.watch`: everything after that number is wanted, as soon as there is something. */
export interface TaskWatchInput {
  readonly task_id: string
  readonly after: number
}

/** Output of `hermes.task.watch`. */
export interface TaskWatchOutput {
  readonly task_id: string
  readonly state: TaskState
  /** Number of the newest event that there is, whether or not it fits in here. */
  readonly last?: number
  readonly events: readonly TaskEvent[]
}

/** Input of `hermes.task.input`: the answer to a question. */
export interface TaskAnswerInput {
  readonly task_id: string
  readonly question_id: string
  readonly answer: JsonValue
}

/** Payload of `ack`: it is stored, and is not lost whatever happens. `task_id` in the ack of a `submit`. */
export interface AckPayload {
  readonly status: 'stored'
  readonly task_id?: string
}

/** The id of the task that a `submit` makes: known before it is acknowledged. */
export function taskIdOf(messageId: string): string {
  return `task_${messageId.slice('msg_'.length)}`
}

/** The message id of the `submit` that has made a task. */
export function messageIdOf(taskId: string): string {
  return `msg_${taskId.slice('task_'.length)}`
}

/** The readers throw `INVALID_PAYLOAD` that names the field. */
export function readTaskWatchInput(payload: JsonValue): TaskWatchInput {
  const fields = only(objectOf(payload, 'hermes.task.watch'), ['task_id', 'after'])
  checkPattern(fields, 'task_id', ID_PATTERNS.task_id)
  checkInteger(fields, 'after', { least: 0 })
  return fields as unknown as TaskWatchInput
}

export function readTaskAnswerInput(payload: JsonValue): TaskAnswerInput {
  const fields = only(objectOf(payload, 'hermes.task.input'), ['task_id', 'question_id', 'answer'])
  checkPattern(fields, 'task_id', ID_PATTERNS.task_id)
  checkPattern(fields, 'question_id', QUESTION_ID)
  if (fields.answer === undefined) refuse('answer', 'is missing')
  return fields as unknown as TaskAnswerInput
}

/** Input of `hermes.task.cancel`. */
export function readTaskCancelInput(payload: JsonValue): { readonly task_id: string } {
  const fields = only(objectOf(payload, 'hermes.task.cancel'), ['task_id'])
  checkPattern(fields, 'task_id', ID_PATTERNS.task_id)
  return fields as unknown as { task_id: string }
}

/** Output of `hermes.task.cancel`: the end that counts. */
export function readTaskCancelOutput(payload: JsonValue): { readonly state: TaskState } {
  const fields = objectOf(payload, 'the answer of hermes.task.cancel')
  checkState(fields, [])
  return fields as unknown as { state: TaskState }
}

export function readAckPayload(payload: JsonValue): AckPayload {
  const fields = only(objectOf(payload, 'an ack'), ['status', 'task_id'])
  if (fields.status !== 'stored') refuse('status', 'is not stored')
  if (fields.task_id !== undefined) checkPattern(fields, 'task_id', ID_PATTERNS.task_id)
  return fields as unknown as AckPayload
}

export function readTaskWatchOutput(payload: JsonValue): TaskWatchOutput {
  const fields = objectOf(payload, 'the answer of hermes.task.watch')
  checkPattern(fields, 'task_id', ID_PATTERNS.task_id)
  if (!STATES.has(fields.state)) refuse('state', 'is not a state of a task')
  if (fields.last !== undefined) checkInteger(fields, 'last', { least: 0 })
  if (!Array.isArray(fields.events)) refuse('events', 'is not a list')
  let before = 0
  for (const [index, event] of (fields.events as readonly JsonValue[]).entries()) {
    before = checkEvent(event, before, ['events', String(index)])
  }
  return fields as unknown as TaskWatchOutput
}

export const QUESTION_ID = /^q[1-9][0-9]{0,15}$/

/** Returns its number. */
function checkEvent(value: JsonValue, before: number, within: readonly string[]): number {
  const event = objectOf(value, 'an event of a task')
  checkInteger(event, 'n', { least: before + 1 }, within)
  checkInteger(event, 'at', { least: 0 }, within)
  switch (event.type) {
    case 'state':
      checkState(event, within)
      break
    case 'progress':
      checkFraction(event, within)
      checkNote(event, within)
      break
    case 'partial':
      if (event.data === undefined) refuse('data', 'is missing', within)
      break
    case 'question':
      checkQuestion(event, within)
      break
    case 'answered':
      checkPattern(event, 'question_id', QUESTION_ID)
      break
    case 'snapshot':
      checkState(event, within)
      if (event.fraction !== undefined) checkFraction(event, within)
      checkNote(event, within)
      if (!Array.isArray(event.questions)) refuse('questions', 'is not a list', within)
      for (const question of event.questions as readonly JsonValue[])
        checkQuestion(objectOf(question, 'a question'), within)
      break
    case 'end':
      checkState(event, within)
      if (!ENDS.has(event.state)) refuse('state', 'is no end of a task', within)
      if (event.message_type !== 'response' && event.message_type !== 'error')
        refuse('message_type', 'is not response or error', within)
      if (event.payload === undefined) refuse('payload', 'is missing', within)
      break
    default:
      // A later minor version may know more of them: whoever does not goes by the number.
      if (typeof event.type !== 'string') refuse('type', 'is not a text', within)
  }
  return event.n as number
}

function checkState(event: JsonObject, within: readonly string[]): void {
  if (!STATES.has(event.state)) refuse('state', 'is not a state of a task', within)
}

function checkFraction({ fraction }: JsonObject, within: readonly string[]): void {
  if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1))
    refuse('fraction', 'is not a number from 0 to 1', within)
}

function checkNote({ note }: JsonObject, within: readonly string[]): void {
  if (note !== undefined && typeof note !== 'string') refuse('note', 'is not a text', within)
}

function checkQuestion(question: JsonObject, within: readonly string[]): void {
  checkPattern(question, 'question_id', QUESTION_ID)
  if (question.data === undefined) refuse('data', 'is missing', within)
}

function only(fields: JsonObject, known: readonly string[]): JsonObject {
  for (const field in fields)
    if (!known.includes(field)) refuse(field, `is not a field here; known are ${known.join(', ')}`)
  return fields
}
