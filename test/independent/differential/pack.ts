import { join } from '../bytes.ts'
import { isMap } from '../compact.ts'
import type { Json } from '../json.ts'

/** MessagePack in a few plain forms: 32-bit lengths, integers as int 64, all other numbers as float 64. */
export function packMsgpack(value: Json): Uint8Array {
  if (value === null) return Uint8Array.of(0xc0)
  if (typeof value === 'boolean') return Uint8Array.of(value ? 0xc3 : 0xc2)
  if (typeof value === 'number') return packNumber(value)
  if (typeof value === 'string') return join(length(0xdb, Buffer.byteLength(value)), Buffer.from(value))
  if (Array.isArray(value)) return join(length(0xdd, value.length), ...value.map(packMsgpack))
  if (!isMap(value)) throw new Error('no data')
  const members = Object.entries(value)
  return join(length(0xdf, members.length), ...members.flatMap(([key, one]) => [packMsgpack(key), packMsgpack(one)]))
}

function length(lead: number, count: number): Uint8Array {
  const bytes = Buffer.alloc(5, lead)
  bytes.writeUInt32BE(count, 1)
  return bytes
}

function packNumber(value: number): Uint8Array {
  if (value >= 0 && value < 128 && Number.isInteger(value)) return Uint8Array.of(value)
  const bytes = Buffer.alloc(9, Number.isSafeInteger(value) ? 0xd3 : 0xcb)
  if (Number.isSafeInteger(value)) bytes.writeBigInt64BE(BigInt(value), 1)
  else bytes.writeDoubleBE(value, 1)
  return bytes
}
