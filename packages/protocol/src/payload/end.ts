import { checkInteger, checkPattern, objectOf, refuse } from './fields.ts'
import { isJsonObject, type JsonObject, type JsonValue } from './value.ts'

export type EndStatus = 'completed' | 'failed'

/** Payload of `end`, the last word of whoever sent chunks. */
export interface EndPayload {
  readonly status: EndStatus
  /** Chunks of data that were sent. */
  readonly count: number
  /** The running hash after the last of them, hex. */
  readonly running_hash: string
  /** The result of a streaming call that completed; left out where the chunks are a payload. */
  readonly output?: JsonValue
  /** Why it failed: the payload of an error. Always there with `failed`. */
  readonly error?: JsonObject
}

const HASH = /^[0-9a-f]{64}$/
const FIELDS = 'status, count, running_hash, output and error'

/** Gives the payload itself, not a copy; throws `INVALID_PAYLOAD` that names the field. */
export function readEndPayload(payload: JsonValue): EndPayload {
  const fields = objectOf(payload, 'an end')
  for (const field in fields) {
    if (!['status', 'count', 'running_hash', 'output', 'error'].includes(field)) {
      refuse(field, `is not a field of an end; it has ${FIELDS}`)
    }
  }
  checkInteger(fields, 'count', { least: 0 })
  checkPattern(fields, 'running_hash', HASH)
  if (fields.status === 'failed') {
    if (!isJsonObject(fields.error)) refuse('error', 'is missing: it tells why the stream failed')
    if (fields.output !== undefined) refuse('output', 'may not stand in the end of a stream that failed')
  } else if (fields.status === 'completed') {
    if (fields.error !== undefined) refuse('error', 'may not stand in the end of a stream that completed')
  } else {
    refuse('status', 'is not completed or failed')
  }
  return fields as unknown as EndPayload
}
