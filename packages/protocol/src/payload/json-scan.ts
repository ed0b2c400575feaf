import { MAX_DEPTH, MAX_KEYS, MAX_VALUES } from './limits.ts'

/** Where and why a text is refused; `offset` in bytes. */
interface ScanFault {
  readonly offset: number
  readonly issue: string
}

export const ISSUES = {
  value: 'a JSON value is expected here',
  end: 'the text goes on after the value',
  key: 'a key in double quotes is expected here',
  colon: 'a colon is expected after the key',
  separator: 'a comma or the closing bracket is expected here',
  string: 'a string has a raw control character, a wrong escape or no end',
  surrogate: 'a string has half of a surrogate pair, which no other language can hold',
  number: 'a number is not spelled as JSON asks',
  integer: 'an integer is beyond ±(2^53 − 1) and would be rounded; send it as a string',
  depth: `more than ${MAX_DEPTH} levels of nesting`,
  keys: `more than ${MAX_KEYS} keys`,
  values: `more than ${MAX_VALUES} values`,
} as const

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const COMMA = 0x2c
const COLON = 0x3a
const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39

/**
 * Reads JSON without building anything: the whole grammar, nesting, number of keys and values, surrogates and size of integers,
 * before a parser allocates for it. Gives the number of keys as written, or the fault. UTF-8, duplicate and forbidden
 * keys are left to whoever builds the values.
 */
export function scanJson(bytes: Uint8Array): number | ScanFault {
  let at = 0
  let keys = 0
  let values = 0
  let depth = 0
  // One bit a level: 1 is an object, 0 a list. 32 levels fit.
  let objects = 0
  for (;;) {
    at = skipSpace(bytes, at)
    if (++values > MAX_VALUES) return { offset: at, issue: ISSUES.values }
    const byte = bytes[at] as number
    let open = false
    if (byte === QUOTE) {
      at = skipString(bytes, at + 1)
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      if (depth === MAX_DEPTH) return { offset: at, issue: ISSUES.depth }
      const object = byte === OPEN_OBJECT
      objects = object ? objects | (1 << depth) : objects & ~(1 << depth)
      depth++
      at = skipSpace(bytes, at + 1)
      if (bytes[at] === (object ? CLOSE_OBJECT : CLOSE_LIST)) {
        depth--
        at++
      } else if (object) {
        at = skipKey(bytes, at)
        if (++keys > MAX_KEYS) return { offset: Math.max(at - 1, 0), issue: ISSUES.keys }
        open = true
      } else {
        open = true
      }
    } else if (byte === MINUS || (byte >= ZERO && byte <= NINE)) {
      at = skipNumber(bytes, at)
    } else {
      at = skipLiteral(bytes, at)
    }
    if (at < 0) return fault(at)
    while (!open) {
      at = skipSpace(bytes, at)
      if (depth === 0) return at === bytes.length ? keys : { offset: at, issue: ISSUES.end }
      const object = ((objects >>> (depth - 1)) & 1) === 1
      const next = bytes[at]
      if (next === COMMA) {
        if (object) {
          at = skipKey(bytes, skipSpace(bytes, at + 1))
          if (at < 0) return fault(at)
          if (++keys > MAX_KEYS) return { offset: at - 1, issue: ISSUES.keys }
        } else {
          at++
        }
        open = true
      } else if (next === (object ? CLOSE_OBJECT : CLOSE_LIST)) {
        at++
        depth--
      } else {
        return { offset: at, issue: ISSUES.separator }
      }
    }
  }
}

// A skip function gives the offset after what it skipped, or a negative number that holds the fault's kind and place.
const KINDS = ['value', 'key', 'colon', 'string', 'surrogate', 'number', 'integer'] as const

function failed(kind: (typeof KINDS)[number], offset: number): number {
  return -(offset * KINDS.length + KINDS.indexOf(kind)) - 1
}

function fault(code: number): ScanFault {
  const packed = -code - 1
  const kind = KINDS[packed % KINDS.length] as (typeof KINDS)[number]
  return { offset: Math.floor(packed / KINDS.length), issue: ISSUES[kind] }
}

export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from
  for (;;) {
    const byte = bytes[at] as number
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at
    at++
  }
}

function skipKey(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== QUOTE) return failed('key', from)
  let at = skipString(bytes, from + 1)
  if (at < 0) return at
  if (bytes[at] === COLON) return at + 1
  at = skipSpace(bytes, at)
  return bytes[at] === COLON ? at + 1 : failed('colon', at)
}

/** After so many plain bytes of a string a native search is faster than looking at each. */
const LONG_RUN = 48

/**
 * From behind the opening quote to behind the closing one. In long strings raw control characters are passed over:
 * the parser that builds the value refuses them.
 */
export function skipString(bytes: Uint8Array, from: number): number {
  let at = from
  let leap = from + LONG_RUN
  // The next quote, once searched for; kept, so that a string of many escapes is not searched to its end for each.
  let quote = -1
  for (;;) {
    const byte = bytes[at] as number
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) {
      at = skipEscape(bytes, at)
      if (at < 0) return at
      leap = at + LONG_RUN
    } else if (byte >= 0x20) {
      at++
      if (at === leap) {
        if (quote < at) quote = bytes.indexOf(QUOTE, at)
        if (quote < 0) return failed('string', bytes.length)
        const backslash = bytes.subarray(at, quote).indexOf(BACKSLASH)
        if (backslash < 0) return quote + 1
        at += backslash
      }
    } else {
      return failed('string', at)
    }
  }
}

function skipEscape(bytes: Uint8Array, from: number): number {
  switch (bytes[from + 1]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return from + 2
    case 0x75: {
      const unit = unitAt(bytes, from)
      if (unit < 0) return failed('string', from)
      if (unit < 0xd800 || unit > 0xdfff) return from + 6
      const low = unit < 0xdc00 ? unitAt(bytes, from + 6) : -1
      return low >= 0xdc00 && low <= 0xdfff ? from + 12 : failed('surrogate', from)
    }
    default:
      return failed('string', from)
  }
}

/** The code unit of a \u escape, -1 when there is none. */
function unitAt(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== BACKSLASH || bytes[from + 1] !== 0x75) return -1
  let unit = 0
  for (let at = from + 2; at < from + 6; at++) {
    const byte = bytes[at] as number
    const lower = byte | 0x20
    if (byte >= ZERO && byte <= NINE) unit = unit * 16 + byte - ZERO
    else if (lower >= 0x61 && lower <= 0x66) unit = unit * 16 + lower - 0x61 + 10
    else return -1
  }
  return unit
}

function skipNumber(bytes: Uint8Array, from: number): number {
  let at = bytes[from] === MINUS ? from + 1 : from
  const start = at
  let magnitude = 0
  for (;;) {
    const digit = (bytes[at] as number) - ZERO
    if (!(digit >= 0 && digit <= 9)) break
    // Exact as long as it can still be a safe integer; rounding never brings a larger one back below.
    magnitude = magnitude * 10 + digit
    at++
  }
  if (at === start || (bytes[start] === ZERO && at - start > 1)) return failed('number', from)
  const next = bytes[at] as number
  if (next !== 0x2e && (next | 0x20) !== 0x65) return magnitude > Number.MAX_SAFE_INTEGER ? failed('integer', from) : at
  return skipFraction(bytes, at, from)
}

function skipFraction(bytes: Uint8Array, dot: number, from: number): number {
  let at = dot
  if (bytes[at] === 0x2e) {
    const digits = skipDigits(bytes, at + 1)
    if (digits === at + 1) return failed('number', from)
    at = digits
  }
  if (((bytes[at] as number) | 0x20) === 0x65) {
    const sign = bytes[at + 1]
    const first = sign === MINUS || sign === 0x2b ? at + 2 : at + 1
    at = skipDigits(bytes, first)
    if (at === first) return failed('number', from)
  }
  return at
}

function skipDigits(bytes: Uint8Array, from: number): number {
  let at = from
  while ((bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at++
  return at
}

const LITERALS = ['true', 'false', 'null'].map((word) => new TextEncoder().encode(word))

function skipLiteral(bytes: Uint8Array, from: number): number {
  for (const word of LITERALS) {
    if (bytes[from] !== word[0]) continue
    for (let i = 1; i < word.length; i++) if (bytes[from + i] !== word[i]) return failed('value', from)
    return from + word.length
  }
  return failed('value', from)
}
