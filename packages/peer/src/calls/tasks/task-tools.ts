import {
  type AnySchema,
  decodePayload,
  deepFreeze,
  encodePayload,
  HermesError,
  type JsonValue,
  type TaskQuestion,
} from '@hermes-peer/protocol'
import type { TaskTools } from '../handler-context.ts'
import { checkNullish } from '../nullish.ts'
import type { Run } from './run.ts'
import type { TaskNews } from './task.ts'
import type { TaskBook } from './task-book.ts'
import { bytesTold, checkWeight, keysOf, type NewsBounds, type Weight } from './tellable.ts'

/** What a handler can do in a task beyond what it can do in a plain call. After the task's end all of it does nothing. */
export function taskTools(run: Run, { book, most }: { book: TaskBook; most: NewsBounds }): TaskTools {
  const { task, provided } = run
  const { contract } = provided
  /** Open questions: whoever asks how the task stands is told of all of them at once. */
  const open = new Set<Weight>()
  const over = (): boolean => task.ended || run.aborted !== undefined

  /** The value as data, checked: a Promise where the schema is asynchronous. */
  const checked = (schema: AnySchema | undefined, value: unknown, what: string): unknown => {
    if (!schema) {
      throw new HermesError('INVALID_RESULT', {
        message: `${contract.name} does not declare ${what}`,
        hint: `Add ${what} to the contract.`,
        details: { field: what },
      })
    }
    return checkNullish(schema, value, what, { code: 'INVALID_RESULT' })
  }

  /** A copy: what the handler does with its object later changes nothing of what was told. */
  const plain = (value: unknown, what: string, newsOf: (data: JsonValue) => TaskNews): { data: JsonValue } & Weight => {
    const payload = encodePayload('application/json', (value ?? null) as never)
    const data = deepFreeze(decodePayload('application/json', payload) as never) as JsonValue
    const weight = { bytes: payload.length, keys: keysOf(data) }
    checkWeight(weight, most, what)
    try {
      bytesTold(newsOf(data))
    } catch (error) {
      const { message } = HermesError.from(error)
      throw HermesError.from(error).with({ message: `${what} in news of a task: ${message}` })
    }
    return { data, ...weight }
  }

  /** Room for one more open question; it ends with its answer. */
  const opened = (weight: Weight): (() => void) => {
    let bytes = weight.bytes
    let keys = weight.keys + QUESTION_KEYS
    for (const other of open) {
      bytes += other.bytes
      keys += other.keys + QUESTION_KEYS
    }
    checkWeight({ bytes, keys }, most, open.size === 0 ? 'question' : 'the open questions')
    open.add(weight)
    return () => open.delete(weight)
  }

  return {
    progress(fraction, note) {
      if (typeof fraction !== 'number' || !(fraction >= 0 && fraction <= 1)) {
        throw new HermesError('INVALID_OPTION', {
          message: `progress: ${String(fraction)} is not a number from 0 to 1`,
          details: { field: 'fraction' },
        })
      }
      if (over()) return
      book.note(task, {
        type: 'progress',
        fraction,
        ...(note === undefined ? {} : { note: String(plain(note, 'note', noteNews).data) }),
      })
    },
    partial(data) {
      const { data: value } = plain(data, 'partial', (told) => ({ type: 'partial', data: told }))
      const result = checked(contract.schemas.partial, data, 'partial')
      const note = (): void => {
        if (!over()) book.note(task, { type: 'partial', data: value })
      }
      if (result instanceof Promise) {
        // Said synchronously where the schema can be; an asynchronous one can only keep the data from being told.
        result.then(note, () => undefined)
      } else note()
    },
    async ask(question) {
      const value = plain(question, 'question', (data) => snapshotOf({ question_id: LONGEST_ID, data }))
      await checked(contract.schemas.question, question, 'asks')
      if (run.aborted) throw run.aborted
      if (task.ended) throw new HermesError('CANCELLED', { message: 'the task has ended' })
      const close = opened(value)
      try {
        const questionId = `q${task.last + 1}`
        book.note(task, { type: 'question', question_id: questionId, data: value.data })
        const answer = run.wait(questionId)
        if (task.state !== 'input_required') book.note(task, { type: 'state', state: 'input_required' })
        return (await answer) as never
      } finally {
        close()
      }
    },
  }
}

/** Keys of a question beside its data. */
const QUESTION_KEYS = 2
const LONGEST_ID = `q${Number.MAX_SAFE_INTEGER}`

/** How a question stands in what older news are folded into: deeper than in the news of it. */
const snapshotOf = (question: TaskQuestion): TaskNews => ({
  type: 'snapshot',
  state: 'input_required',
  questions: [question],
})

const noteNews = (note: JsonValue): TaskNews => ({ type: 'progress', fraction: 1, note: String(note) })
