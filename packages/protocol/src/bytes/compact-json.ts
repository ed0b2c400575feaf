import { HermesError } from '../errors/hermes-error.ts'
import { isForbiddenKey } from '../payload/limits.ts'

/**
 * The strict JSON of headers, hops and handshake messages: printable ASCII, no white space, no escapes, integers only.
 * One comparison shows it all: the bytes equal their own re-serialisation, so that a document has one spelling.
 */
export function encodeCompact(value: object): Uint8Array {
  const text = JSON.stringify(value)
  if (UNPRINTABLE.test(text)) {
    throw new HermesError('MALFORMED', { message: 'only printable ASCII without escapes may stand here' })
  }
  return Buffer.from(text, 'latin1')
}

/** Anything but printable ASCII; the backslash is what every escape begins with. */
const UNPRINTABLE = /[^\x20-\x5b\x5d-\x7e]/

/** Throws `MALFORMED` that names `what`. The result is an object. */
export function decodeCompact(bytes: Uint8Array, what: string): Record<string, unknown> {
  const refuse = (why: string): never => {
    throw new HermesError('MALFORMED', { message: `${what}: ${why}` })
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  if (UNPRINTABLE.test(text)) refuse('only printable ASCII without escapes may stand here')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    refuse('not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse('not an object')
  if (JSON.stringify(value) !== text) refuse('not in the one compact spelling')
  const unsound = soundness(value, 1)
  if (unsound) refuse(unsound)
  return value as Record<string, unknown>
}

const MAX_DEPTH = 32

/** Why the data is not what may stand in such a document; also of keys that are ignored, so that all readers agree on all bytes. */
function soundness(value: unknown, depth: number): string | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? undefined : 'a number is not a safe integer'
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > MAX_DEPTH) return `nested deeper than ${MAX_DEPTH} levels`
  for (const key in value) {
    if (isForbiddenKey(key)) return 'a key is not allowed'
    const unsound = soundness((value as Record<string, unknown>)[key], depth + 1)
    if (unsound) return unsound
  }
  return undefined
}
