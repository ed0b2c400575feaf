import { isForbiddenKey, MAX_DEPTH, MAX_KEYS, MAX_VALUES } from './limits.ts'
import { invalidPayload } from './refusal.ts'
import type { JsonValue } from './value.ts'

// Own code and not the library's decoder: that one drops a byte order mark at the start of long strings and repairs
// what is not UTF-8, and a check before it would have to read all that this reads.

/** Reads one value that fills `bytes`. Throws `INVALID_PAYLOAD` with the place. */
export function readMsgpack(bytes: Uint8Array): JsonValue {
  const reader = new Reader(bytes)
  const value = reader.value(0)
  reader.end()
  return value
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Up to here looking at each byte beats a call of the decoder. */
const SHORT_TEXT = 24

class Reader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  /** The way to the value in hand; only as much of it as the depth says is current. */
  readonly #trail: (string | number)[] = []
  #at = 0
  #keys = 0
  #values = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  value(depth: number): JsonValue {
    if (++this.#values > MAX_VALUES) this.#refuse(depth, `more than ${MAX_VALUES} values`)
    const head = this.#view.getUint8(this.#take(1, depth))
    if (head < 0x80) return head
    if (head < 0x90) return this.#map(head & 0x0f, depth)
    if (head < 0xa0) return this.#list(head & 0x0f, depth)
    if (head < 0xc0) return this.#text(head & 0x1f, depth)
    if (head >= 0xe0) return head - 0x100
    const view = this.#view
    switch (head) {
      case 0xc0:
        return null
      case 0xc2:
        return false
      case 0xc3:
        return true
      case 0xca:
        return this.#float(view.getFloat32(this.#take(4, depth)), depth)
      case 0xcb:
        return this.#float(view.getFloat64(this.#take(8, depth)), depth)
      case 0xcc:
        return view.getUint8(this.#take(1, depth))
      case 0xcd:
        return view.getUint16(this.#take(2, depth))
      case 0xce:
        return view.getUint32(this.#take(4, depth))
      case 0xcf:
        return this.#big(view.getBigUint64(this.#take(8, depth)), depth)
      case 0xd0:
        return view.getInt8(this.#take(1, depth))
      case 0xd1:
        return view.getInt16(this.#take(2, depth))
      case 0xd2:
        return view.getInt32(this.#take(4, depth))
      case 0xd3:
        return this.#big(view.getBigInt64(this.#take(8, depth)), depth)
      case 0xd9:
        return this.#text(view.getUint8(this.#take(1, depth)), depth)
      case 0xda:
        return this.#text(view.getUint16(this.#take(2, depth)), depth)
      case 0xdb:
        return this.#text(view.getUint32(this.#take(4, depth)), depth)
      case 0xdc:
        return this.#list(view.getUint16(this.#take(2, depth)), depth)
      case 0xdd:
        return this.#list(view.getUint32(this.#take(4, depth)), depth)
      case 0xde:
        return this.#map(view.getUint16(this.#take(2, depth)), depth)
      case 0xdf:
        return this.#map(view.getUint32(this.#take(4, depth)), depth)
      default:
        return this.#refuse(depth, `${kindOf(head)} cannot stand in a payload`)
    }
  }

  end(): void {
    if (this.#at !== this.#bytes.length) this.#refuse(0, 'there are bytes after the value')
  }

  /** The offset of the next `count` bytes, which are there. */
  #take(count: number, depth: number): number {
    const from = this.#at
    if (count > this.#bytes.length - from) this.#refuse(depth, 'the bytes end within this value')
    this.#at = from + count
    return from
  }

  #float(value: number, depth: number): number {
    if (!Number.isFinite(value)) this.#refuse(depth, `${value} is not a JSON number`)
    return value === 0 ? 0 : value
  }

  #big(value: bigint, depth: number): number {
    const number = Number(value)
    if (Number.isSafeInteger(number)) return number
    return this.#refuse(depth, 'an integer is beyond ±(2^53 − 1) and would be rounded; send it as a string')
  }

  #text(length: number, depth: number): string {
    const from = this.#take(length, depth)
    const bytes = this.#bytes.subarray(from, from + length)
    if (length <= SHORT_TEXT && isAscii(bytes)) return String.fromCharCode.apply(null, bytes as unknown as number[])
    try {
      return decoder.decode(bytes)
    } catch {
      return this.#refuse(depth, 'a string is not valid UTF-8')
    }
  }

  #list(length: number, depth: number): JsonValue {
    this.#enter(length, depth)
    // Grown by pushing: the length is only a claim.
    const list: JsonValue[] = []
    for (let i = 0; i < length; i++) {
      this.#trail[depth] = i
      list.push(this.value(depth + 1))
    }
    return list
  }

  #map(length: number, depth: number): JsonValue {
    this.#enter(length * 2, depth)
    this.#keys += length
    if (this.#keys > MAX_KEYS) this.#refuse(depth, `more than ${MAX_KEYS} keys`)
    const map: Record<string, JsonValue> = {}
    for (let i = 0; i < length; i++) {
      const key = this.#key(depth)
      this.#trail[depth] = key
      if (isForbiddenKey(key)) this.#refuse(depth + 1, 'this key is not allowed in data')
      if (Object.hasOwn(map, key)) this.#refuse(depth + 1, 'this key stands twice in its object')
      map[key] = this.value(depth + 1)
    }
    return map
  }

  #key(depth: number): string {
    const head = this.#view.getUint8(this.#take(1, depth))
    if (head >= 0xa0 && head < 0xc0) return this.#text(head & 0x1f, depth)
    if (head === 0xd9) return this.#text(this.#view.getUint8(this.#take(1, depth)), depth)
    if (head === 0xda) return this.#text(this.#view.getUint16(this.#take(2, depth)), depth)
    if (head === 0xdb) return this.#text(this.#view.getUint32(this.#take(4, depth)), depth)
    return this.#refuse(depth, 'a key is not a string')
  }

  /** Each value takes a byte at least, so a count beyond what is left is a lie found before any work. */
  #enter(values: number, depth: number): void {
    if (depth === MAX_DEPTH) this.#refuse(depth, `more than ${MAX_DEPTH} levels of nesting`)
    if (values > this.#bytes.length - this.#at) this.#refuse(depth, 'the bytes end within this value')
  }

  #refuse(depth: number, issue: string): never {
    throw invalidPayload(this.#trail.slice(0, depth), issue)
  }
}

function kindOf(head: number): string {
  if (head >= 0xc4 && head <= 0xc6) return 'binary data (send base64)'
  if (head === 0xc1) return 'the byte 0xc1, which MessagePack never uses,'
  return 'an extension type'
}

function isAscii(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if ((bytes[i] as number) > 0x7f) return false
  return true
}
