import { inspect } from './inspect.ts'
import { locate } from './json-locate.ts'
import { scanJson } from './json-scan.ts'
import { MAX_PAYLOAD_BYTES } from './limits.ts'
import { invalidPayload, payloadTooLarge } from './refusal.ts'
import { plainNumber, tally } from './tally.ts'
import type { JsonValue } from './value.ts'

export interface EncodeOptions {
  /** Most bytes of the result, default 64 MiB. */
  maxBytes?: number
}

const encoder = new TextEncoder()
// A byte order mark is no part of JSON: kept, so that the scan refuses it.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The bytes of plain data. An undefined property is left out, undefined as a whole is null, -0 is 0. All else that
 * JSON cannot carry throws `INVALID_PAYLOAD` with its place: undefined in a list, bigint, symbol, function, NaN and
 * infinities, integers beyond ±(2^53 − 1) (as far as JSON spells them out: below 10^21), class instances such as Date
 * and Map, cycles, lone surrogates, forbidden keys, more than 32 levels, 10,000 keys or 1,000,000 values. Properties
 * under symbols are not data and are left out. Throws `PAYLOAD_TOO_LARGE` over `maxBytes`.
 */
export function encodeJson(value: unknown, options: EncodeOptions = {}): Uint8Array {
  const limit = options.maxBytes ?? MAX_PAYLOAD_BYTES
  const text = plainText(value, limit)
  if (text.length > limit) throw payloadTooLarge(limit)
  const bytes = encoder.encode(text)
  if (bytes.length > limit) throw payloadTooLarge(limit, bytes.length)
  return bytes
}

function plainText(value: unknown, limit: number): string {
  inspect(value, { limit })
  const text = JSON.stringify(value ?? null)
  // A lone surrogate is written as an escape; nothing else is, but for a text that spells one out.
  if (text.includes('\\ud')) inspect(value, { limit, checkStrings: true })
  return text
}

/**
 * Reads JSON strictly: valid UTF-8, no duplicate or forbidden key, no lone surrogate (also not by escapes), at most 32
 * levels, 10,000 keys and 1,000,000 values, no integer beyond ±(2^53 − 1). A number with a fraction or an exponent is a double, refused
 * if it overflows; -0 becomes 0. Throws `INVALID_PAYLOAD` with the place.
 */
export function decodeJson(bytes: Uint8Array): JsonValue {
  const scanned = scanJson(bytes)
  if (typeof scanned !== 'number') throw invalidPayload(locate(bytes, scanned.offset).path, scanned.issue)
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch (cause) {
    throw invalidPayload([], 'the bytes are not valid UTF-8', cause)
  }
  const value = parse(text, bytes)
  if (typeof value === 'number') return plainNumber(value)
  if (typeof value !== 'object' || value === null) return value
  if (tally(value) === scanned) return value
  // Keys were lost in parsing, so one stands twice.
  const { path, issue } = locate(bytes, bytes.length)
  throw invalidPayload(path, issue ?? 'a key stands twice in its object')
}

function parse(text: string, bytes: Uint8Array): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch (cause) {
    // What the scan leaves to the parser is a control character in a long string.
    const { path, issue } = locate(bytes, bytes.length)
    throw invalidPayload(path, issue ?? 'the text is not valid JSON', cause)
  }
}
