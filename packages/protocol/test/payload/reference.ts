// A slow and simple judge of strict JSON and strict MessagePack, written from the wire contract and sharing nothing
// with the product's code. It throws for what must be refused.

class Refused extends Error {}

function no(why: string): never {
  throw new Refused(why)
}

const FORBIDDEN = ['__proto__', 'constructor', 'prototype']

/** Code points of valid UTF-8 (RFC 3629), by the table of the standard. */
function codePoints(bytes: Uint8Array): number[] {
  const out: number[] = []
  let i = 0
  while (i < bytes.length) {
    const a = bytes[i] as number
    const more =
      a < 0x80 ? 0 : a >= 0xc2 && a <= 0xdf ? 1 : a >= 0xe0 && a <= 0xef ? 2 : a >= 0xf0 && a <= 0xf4 ? 3 : -1
    if (more < 0) no('utf-8 lead')
    let point = more === 0 ? a : a & (0x3f >> more)
    for (let k = 1; k <= more; k++) {
      const b = bytes[i + k]
      if (b === undefined || b < 0x80 || b > 0xbf) no('utf-8 tail')
      point = (point << 6) | (b & 0x3f)
    }
    if (more === 2 && (point < 0x800 || (point >= 0xd800 && point <= 0xdfff))) no('utf-8 overlong or surrogate')
    if (more === 3 && (point < 0x10000 || point > 0x10ffff)) no('utf-8 range')
    out.push(point)
    i += more + 1
  }
  return out
}

const wellFormed = (text: string) => !/\p{Surrogate}/u.test(text)

function checkNumber(token: string): number {
  if (/^-?\d+$/.test(token)) {
    const big = BigInt(token)
    if (big > 9007199254740991n || big < -9007199254740991n) no('integer')
  }
  const value = Number(token)
  if (!Number.isFinite(value)) no('overflow')
  return value === 0 ? 0 : value
}

/** The value of strict JSON, objects as Maps. */
export function referenceJson(bytes: Uint8Array): unknown {
  let rest = codePoints(bytes)
    .map((point) => String.fromCodePoint(point))
    .join('')
  let keys = 0
  let values = 0
  const match = (form: RegExp): string | undefined => {
    const found = form.exec(rest)?.[0]
    if (found !== undefined) rest = rest.slice(found.length)
    return found
  }
  const space = () => match(/^[ \t\n\r]*/)
  const another = () => {
    space()
    return match(/^,/)
  }
  const text = (): string | undefined => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them
    const token = match(/^"(?:[^"\\\u0000-\u001f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/)
    if (token === undefined) return undefined
    const value = token
      .slice(1, -1)
      .replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_, hex?: string, char?: string) =>
        hex !== undefined
          ? String.fromCharCode(Number.parseInt(hex, 16))
          : ({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }[char as string] ?? (char as string)),
      )
    if (!wellFormed(value)) no('surrogate')
    return value
  }
  const value = (depth: number): unknown => {
    if (++values > 1_000_000) no('values')
    space()
    const string = text()
    if (string !== undefined) return string
    const number = match(/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/)
    if (number !== undefined) return checkNumber(number)
    const word = match(/^(?:true|false|null)/)
    if (word !== undefined) return { true: true, false: false, null: null }[word]
    if (match(/^\[/)) {
      if (depth === 32) no('depth')
      const list: unknown[] = []
      space()
      if (match(/^\]/)) return list
      do list.push(value(depth + 1))
      while (another())
      if (!match(/^\]/)) no('list')
      return list
    }
    if (!match(/^\{/)) no('value')
    if (depth === 32) no('depth')
    const map = new Map<string, unknown>()
    space()
    if (match(/^\}/)) return map
    do {
      space()
      const key = text() ?? no('key')
      if (FORBIDDEN.includes(key) || map.has(key)) no('key')
      if (++keys > 10_000) no('keys')
      space()
      if (!match(/^:/)) no('colon')
      map.set(key, value(depth + 1))
    } while (another())
    if (!match(/^\}/)) no('object')
    return map
  }
  const result = value(0)
  space()
  if (rest !== '') no('rest')
  return result
}

/** The value of strict MessagePack, objects as Maps. */
export function referenceMsgpack(bytes: Uint8Array): unknown {
  let at = 0
  let keys = 0
  let values = 0
  const take = (count: number): Uint8Array => {
    if (at + count > bytes.length) no('short')
    at += count
    return bytes.subarray(at - count, at)
  }
  const unsigned = (count: number): bigint => take(count).reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  const signed = (count: number): bigint => BigInt.asIntN(count * 8, unsigned(count))
  const safe = (value: bigint): number => {
    if (value > 9007199254740991n || value < -9007199254740991n) no('integer')
    return Number(value)
  }
  const float = (value: number): number => (Number.isFinite(value) ? (value === 0 ? 0 : value) : no('float'))
  const copy = (count: number) => new DataView(Uint8Array.from(take(count)).buffer)
  const text = (length: number) =>
    codePoints(take(length))
      .map((point) => String.fromCodePoint(point))
      .join('')
  const textBy = (head: number): string | undefined => {
    if ((head & 0xe0) === 0xa0) return text(head & 31)
    if (head >= 0xd9 && head <= 0xdb) return text(Number(unsigned(2 ** (head - 0xd9))))
    return undefined
  }
  const value = (depth: number): unknown => {
    if (++values > 1_000_000) no('values')
    const head = Number(unsigned(1))
    const string = textBy(head)
    if (string !== undefined) return string
    if (head < 0x80) return head
    if (head >= 0xe0) return head - 256
    if (head === 0xc0) return null
    if (head === 0xc2 || head === 0xc3) return head === 0xc3
    if (head === 0xca) return float(copy(4).getFloat32(0))
    if (head === 0xcb) return float(copy(8).getFloat64(0))
    if (head >= 0xcc && head <= 0xcf) return safe(unsigned(2 ** (head - 0xcc)))
    if (head >= 0xd0 && head <= 0xd3) return safe(signed(2 ** (head - 0xd0)))
    const list =
      (head & 0xf0) === 0x90
        ? head & 15
        : head === 0xdc
          ? Number(unsigned(2))
          : head === 0xdd
            ? Number(unsigned(4))
            : -1
    if (list >= 0) {
      if (depth === 32) no('depth')
      const out: unknown[] = []
      for (let i = 0; i < list; i++) out.push(value(depth + 1))
      return out
    }
    const map =
      (head & 0xf0) === 0x80
        ? head & 15
        : head === 0xde
          ? Number(unsigned(2))
          : head === 0xdf
            ? Number(unsigned(4))
            : -1
    if (map < 0) no('type')
    if (depth === 32) no('depth')
    const out = new Map<string, unknown>()
    for (let i = 0; i < map; i++) {
      if (++keys > 10_000) no('keys')
      const key = textBy(Number(unsigned(1))) ?? no('key')
      if (FORBIDDEN.includes(key) || out.has(key)) no('key')
      out.set(key, value(depth + 1))
    }
    return out
  }
  const result = value(0)
  if (at !== bytes.length) no('rest')
  return result
}

/** The reference's Maps as plain objects, for comparison. */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]))
  return value
}

/** What a judge says of bytes: their value, or that they are refused. Faults of the judge itself are thrown on. */
export function verdict(judge: (bytes: Uint8Array) => unknown, bytes: Uint8Array): { value: unknown } | 'refused' {
  try {
    return { value: plain(judge(bytes)) }
  } catch (error) {
    if (error instanceof Refused) return 'refused'
    throw error
  }
}
