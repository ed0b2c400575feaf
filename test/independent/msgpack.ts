import { type Cursor, cursor } from './bytes.ts'
import { type Json, type JsonMap, text } from './json.ts'
import { Refused } from './refused.ts'

const MAX_DEPTH = 32
const MAX_KEYS = 10_000
const MAX_VALUES = 1_000_000

interface Seen {
  keys: number
  values: number
}
const UNSAFE_KEYS = new Set(['__proto__', 'constructor', 'prototype'])

const no = (why: string): never => {
  throw new Refused('payload', why)
}

/** MessagePack in the JSON data model: string keys, no ext, no bin, no NaN, no duplicates. */
export function parseMsgpack(bytes: Uint8Array): Json {
  const at = cursor(bytes, 'payload')
  const value = readValue(at, 0, { keys: 0, values: 0 })
  at.end()
  return value
}

function view(at: Cursor, length: number): DataView {
  const bytes = at.take(length)
  return new DataView(bytes.buffer, bytes.byteOffset, length)
}

function readValue(at: Cursor, depth: number, seen: Seen): Json {
  seen.values += 1
  if (seen.values > MAX_VALUES) no('too many values')
  const lead = at.byte()
  if (lead < 0x80) return lead
  if (lead < 0x90) return readMap(at, lead & 0x0f, depth + 1, seen)
  if (lead < 0xa0) return readArray(at, lead & 0x0f, depth + 1, seen)
  if (lead < 0xc0) return readString(at, lead & 0x1f)
  if (lead >= 0xe0) return lead - 0x100
  switch (lead) {
    case 0xc0:
      return null
    case 0xc2:
      return false
    case 0xc3:
      return true
    case 0xca:
      return finite(view(at, 4).getFloat32(0))
    case 0xcb:
      return finite(view(at, 8).getFloat64(0))
    case 0xcc:
      return at.byte()
    case 0xcd:
      return view(at, 2).getUint16(0)
    case 0xce:
      return view(at, 4).getUint32(0)
    case 0xcf:
      return exact(view(at, 8).getBigUint64(0))
    case 0xd0:
      return view(at, 1).getInt8(0)
    case 0xd1:
      return view(at, 2).getInt16(0)
    case 0xd2:
      return view(at, 4).getInt32(0)
    case 0xd3:
      return exact(view(at, 8).getBigInt64(0))
    case 0xd9:
      return readString(at, at.byte())
    case 0xda:
      return readString(at, view(at, 2).getUint16(0))
    case 0xdb:
      return readString(at, view(at, 4).getUint32(0))
    case 0xdc:
      return readArray(at, view(at, 2).getUint16(0), depth + 1, seen)
    case 0xdd:
      return readArray(at, view(at, 4).getUint32(0), depth + 1, seen)
    case 0xde:
      return readMap(at, view(at, 2).getUint16(0), depth + 1, seen)
    case 0xdf:
      return readMap(at, view(at, 4).getUint32(0), depth + 1, seen)
    default:
      return no(`type 0x${lead.toString(16)} is not of the JSON data model`)
  }
}

function finite(value: number): number {
  if (!Number.isFinite(value)) no('NaN or an infinity')
  return value === 0 ? 0 : value
}

function exact(value: bigint): number {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : no('a large integer')
}

function readString(at: Cursor, length: number): string {
  return text(at.take(length), 'payload')
}

function readArray(at: Cursor, length: number, depth: number, seen: Seen): Json[] {
  if (depth > MAX_DEPTH) no('nested too deeply')
  if (length > at.left) no('more items than bytes')
  return Array.from({ length }, () => readValue(at, depth, seen))
}

function readMap(at: Cursor, length: number, depth: number, seen: Seen): JsonMap {
  if (depth > MAX_DEPTH) no('nested too deeply')
  seen.keys += length
  if (seen.keys > MAX_KEYS || length > at.left) no('too many keys')
  const found = new Map<string, Json>()
  for (let index = 0; index < length; index += 1) {
    const key = readValue(at, depth, seen)
    // Read like a value, and none.
    seen.values -= 1
    if (typeof key !== 'string') return no('a key that is no string')
    if (found.has(key) || UNSAFE_KEYS.has(key)) no(`key ${key}`)
    found.set(key, readValue(at, depth, seen))
  }
  return Object.fromEntries(found)
}
