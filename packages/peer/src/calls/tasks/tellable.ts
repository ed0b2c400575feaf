import { encodePayload, HermesError, type JsonValue, taskIdOf } from '@hermes-peer/protocol'
import type { Outcome } from '../../delivery/dedup.ts'
import { bounded, errorOutcome, invalidResult } from '../outcomes.ts'
import type { TaskNews } from './task.ts'

// What is told of a task stands deeper in an answer than in a response, and beside other news: what would fit into a response alone
// may fit into no answer that tells of it. It is judged before it is noted, so that whatever is noted can be stored and told.

const ANY_NUMBER = Number.MAX_SAFE_INTEGER
/** What else stands in the answer, at its largest. */
const FRAME = { task_id: taskIdOf(`msg_${'0'.repeat(16)}`), state: 'input_required', last: ANY_NUMBER }

/** Bytes of an answer with that news alone. Throws `INVALID_PAYLOAD` where no answer can carry it. */
export function bytesTold(news: TaskNews): number {
  const events = [{ ...news, n: ANY_NUMBER, at: ANY_NUMBER }]
  return encodePayload('application/json', { output: { ...FRAME, events }, status: 'completed' } as never).length
}

/**
 * That outcome with the news of it, or in its place the error that says why it cannot be told; `limit` is that of an envelope,
 * bytes.
 */
export function tellable(
  outcome: Outcome,
  limit: number,
  newsOf: (outcome: Outcome) => TaskNews,
): { outcome: Outcome; news: TaskNews } {
  const instead = (told: Outcome) => ({ outcome: told, news: newsOf(told) })
  const short = bounded(outcome, limit)
  if (short !== outcome) return instead(short)
  try {
    const news = newsOf(outcome)
    const beside = bytesTold(news) - outcome.payload.length
    const told = bounded(outcome, limit - beside)
    return told === outcome ? { outcome, news } : instead(told)
  } catch (error) {
    return instead(errorOutcome(invalidResult(error), outcome.contentType))
  }
}

export interface NewsBounds {
  /** Of the data of one piece of news, and of the open questions together. */
  readonly bytes: number
  readonly keys: number
}

/** What data costs in an answer. */
export interface Weight {
  readonly bytes: number
  readonly keys: number
}

/** Throws `PAYLOAD_TOO_LARGE` for data that cannot be told beside the rest of what may have to be told with it. */
export function checkWeight({ bytes, keys }: Weight, most: NewsBounds, what: string): void {
  if (bytes > most.bytes) {
    throw new HermesError('PAYLOAD_TOO_LARGE', {
      message: `${what} has ${bytes} bytes, news of a task may have ${most.bytes}`,
      details: { size: bytes, limit: most.bytes, field: what },
    })
  }
  if (keys > most.keys) {
    throw new HermesError('PAYLOAD_TOO_LARGE', {
      message: `${what} has ${keys} keys, news of a task may have ${most.keys}`,
      hint: 'Tell it in parts, or as lists of values in place of objects.',
      details: { size: keys, limit: most.keys, field: what },
    })
  }
}

/** Keys of all objects in plain data. */
export function keysOf(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) {
    let keys = 0
    for (const item of value as readonly JsonValue[]) keys += keysOf(item)
    return keys
  }
  let keys = 0
  for (const key in value) keys += 1 + keysOf((value as Record<string, JsonValue>)[key] as JsonValue)
  return keys
}
