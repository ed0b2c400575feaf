import { encode } from '@msgpack/msgpack'
import { inspect } from './inspect.ts'
import type { EncodeOptions } from './json.ts'
import { MAX_DEPTH, MAX_PAYLOAD_BYTES } from './limits.ts'
import { readMsgpack } from './msgpack-read.ts'
import { payloadTooLarge } from './refusal.ts'
import type { JsonValue } from './value.ts'

/** The bytes of plain data as MessagePack; the same data, and the same refusals, as `encodeJson`. */
export function encodeMsgpack(value: unknown, options: EncodeOptions = {}): Uint8Array {
  const limit = options.maxBytes ?? MAX_PAYLOAD_BYTES
  inspect(value, { limit, checkStrings: true })
  const bytes = encode(value ?? null, { ignoreUndefined: true, maxDepth: MAX_DEPTH + 1 })
  if (bytes.length > limit) throw payloadTooLarge(limit, bytes.length)
  return bytes
}

/**
 * Reads MessagePack strictly, as far as it carries JSON data: string keys only, no bin, no ext, no NaN or infinity,
 * integers within ±(2^53 − 1), valid UTF-8, no duplicate or forbidden key, at most 32 levels, 10,000 keys and 1,000,000
 * values, nothing after the value. -0 becomes 0. Throws `INVALID_PAYLOAD` with the place.
 */
export function decodeMsgpack(bytes: Uint8Array): JsonValue {
  return readMsgpack(bytes)
}
