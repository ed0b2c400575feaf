import { type AnySchema, encodePayload, HermesError, type JsonValue } from '@hermes-peer/protocol'
import type { TaskTools } from '../handler-context.ts'
import { checkNullish } from '../nullish.ts'
import type { Run } from './run.ts'
import type { TaskBook } from './task-book.ts'

/** What a handler can do in a task beyond what it can do in a plain call. After the task's end all of it does nothing. */
export function taskTools(run: Run, { book, newsBytes }: { book: TaskBook; newsBytes: number }): TaskTools {
  const { task, provided } = run
  const { contract } = provided
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

  const plain = (value: unknown, what: string): JsonValue => {
    const { length } = encodePayload('application/json', (value ?? null) as never)
    if (length > newsBytes) {
      throw new HermesError('PAYLOAD_TOO_LARGE', {
        message: `${what} has ${length} bytes, news of a task may have ${newsBytes}`,
        details: { size: length, limit: newsBytes, field: what },
      })
    }
    return (value ?? null) as JsonValue
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
        ...(note === undefined ? {} : { note: String(plain(note, 'note')) }),
      })
    },
    partial(data) {
      const value = plain(data, 'partial')
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
      const value = plain(question, 'question')
      await checked(contract.schemas.question, question, 'asks')
      if (run.aborted) throw run.aborted
      if (task.ended) throw new HermesError('CANCELLED', { message: 'the task has ended' })
      const questionId = `q${task.last + 1}`
      book.note(task, { type: 'question', question_id: questionId, data: value })
      const answer = run.wait(questionId)
      if (task.state !== 'input_required') book.note(task, { type: 'state', state: 'input_required' })
      return (await answer) as never
    },
  }
}
