import type { Capability, JsonValue, TaskEvent, TaskQuestion, TaskState } from '@hermes-peer/protocol'
import type { TaskQuestionOf, TaskStatus } from '../../api.ts'

/** What of news is checked against the contract before the caller sees it. */
export interface NewsReader {
  partial(data: JsonValue): Promise<unknown>
  question(question: TaskQuestion): Promise<TaskQuestionOf<Capability>>
}

/** How a task stands, made of its news in their order. */
export interface StatusFold {
  add(event: TaskEvent): Promise<void>
  readonly status: TaskStatus<Capability>
}

/** How a task stands of which nothing is known. */
export const withoutNews = (state: TaskState | 'submitted' | 'rejected'): TaskStatus<Capability> => ({
  state,
  fraction: undefined,
  note: undefined,
  partial: undefined,
  questions: [],
})

export function createStatusFold(read: NewsReader): StatusFold {
  let known = withoutNews('submitted')
  /** Open questions, by their ids. */
  const questions = new Map<string, TaskQuestionOf<Capability>>()
  const ask = async (question: TaskQuestion): Promise<void> => {
    questions.set(question.question_id, await read.question(question))
  }
  return {
    async add(event) {
      switch (event.type) {
        case 'state':
        case 'end':
          // On with the work, or back in the queue after a restart: nobody waits for an answer any more.
          if (event.state !== 'input_required') questions.clear()
          known = { ...known, state: event.state }
          break
        case 'progress':
          known = { ...known, fraction: event.fraction, note: event.note ?? known.note }
          break
        case 'partial':
          known = { ...known, partial: await read.partial(event.data) }
          break
        case 'question':
          await ask(event)
          break
        case 'answered':
          questions.delete(event.question_id)
          break
        case 'snapshot': {
          const { state, fraction, note, partial } = event
          known = {
            ...known,
            state,
            fraction,
            note,
            partial: partial === undefined ? partial : await read.partial(partial),
          }
          questions.clear()
          for (const question of event.questions) await ask(question)
          break
        }
        default:
      }
    },
    get status() {
      return { ...known, questions: [...questions.values()] }
    },
  }
}
