import {
  type ContentType,
  decodePayload,
  type ErrorCode,
  encodePayload,
  HermesError,
  isHermesError,
  LIMITS,
  toWireError,
} from '@hermes-peer/protocol'
import type { Outcome, WorkRecord } from '../delivery/dedup.ts'

/** What a handler gave, as it is sent. Throws `INVALID_PAYLOAD` for what is not plain data. */
export function responseOutcome(payload: unknown, contentType: ContentType): Outcome {
  return { messageType: 'response', contentType, payload: encodePayload(contentType, payload as never) }
}

/** What another peer is told of an error, as it is sent. */
export function errorOutcome(error: HermesError, contentType: ContentType): Outcome {
  const wire = toWireError(error)
  let payload: Uint8Array
  try {
    payload = encodePayload(contentType, wire as never)
  } catch {
    // The data of a declared error may be anything: what cannot be sent is left out.
    payload = encodePayload(contentType, { ...wire, details: {} } as never)
  }
  return { messageType: 'error', contentType, payload }
}

/** The code that an outcome tells, for the log. */
export function codeOf(outcome: Outcome): ErrorCode | string {
  const { error_code } = decodePayload(outcome.contentType, outcome.payload) as { error_code?: string }
  return error_code ?? 'INTERNAL'
}

export function invalidResult(error: unknown): HermesError {
  return new HermesError('INVALID_RESULT', {
    message: `the handler returned what cannot be sent: ${isHermesError(error) ? error.message : 'not plain data'}`,
    ...(isHermesError(error) ? { details: error.details } : {}),
    cause: error,
  })
}

/** What another peer is told of a throw: a declared error as it is, a runtime error of a nested call by its code, else only that it failed. */
export function handlerError(thrown: unknown): HermesError {
  if (isHermesError(thrown) && thrown.declared && !thrown.remote) return thrown
  if (isHermesError(thrown)) {
    return new HermesError('HANDLER_ERROR', {
      message: `the handler failed: ${thrown.code}`,
      details: { cause_code: thrown.code },
      cause: thrown,
    })
  }
  return new HermesError('HANDLER_ERROR', { cause: thrown })
}

/** What is told of finished work: its outcome, or that this is not kept. Undefined while there is none. */
export function rememberedOf(record: WorkRecord): Outcome | undefined {
  if (record.outcome || record.state !== 'done' || !(record.stream || record.digest)) return record.outcome
  const details = record.digest === undefined ? {} : { payload_sha256: record.digest }
  return errorOutcome(new HermesError('RESULT_GONE', { details }), 'application/json')
}

/** Room that the header of an answer takes at most, rounded up from its fields. */
export const HEADER_ROOM = 1536

/**
 * An answer larger than the caller takes becomes an error that says so: it would fail at the far end only. `limit` is that of
 * an envelope, `apart` that of a payload in chunks, where the answer may travel so.
 */
export function bounded(outcome: Outcome, limit: number, apart = 0): Outcome {
  const { length } = outcome.payload
  const size = length + HEADER_ROOM
  if (size <= limit || (length <= apart && Math.max(limit, length) >= LIMITS.envelope)) return outcome
  return errorOutcome(
    new HermesError('INVALID_RESULT', {
      message: `the result has ${size} bytes with its header, the limit is ${limit}`,
      details: { size, limit },
    }),
    outcome.contentType,
  )
}
