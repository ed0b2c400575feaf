import { type Json, type JsonMap, parseJson, text } from './json.ts'
import { type Fault, Refused } from './refused.ts'

/**
 * Compact JSON: printable ASCII, no white space (but a space inside a text), no escapes, integers only, the one
 * spelling of each value.
 */
export function parseCompact(bytes: Uint8Array, fault: Fault): JsonMap {
  if (bytes.some((byte) => byte < 0x20 || byte > 0x7e || byte === 0x5c)) {
    throw new Refused(fault, 'an escape or something beyond printable ASCII')
  }
  const value = parseJson(bytes, fault)
  if (!isMap(value)) throw new Refused(fault, 'not an object')
  if (spell(value) !== text(bytes, fault)) throw new Refused(fault, 'not its own re-serialisation')
  return value
}

export const isMap = (value: Json | undefined): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function spell(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(spell).join(',')}]`
  if (isMap(value)) {
    const members = Object.entries(value).map(([key, member]) => `"${key}":${spell(member)}`)
    return `{${members.join(',')}}`
  }
  if (typeof value === 'string') return `"${value}"`
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value.toFixed(0) : 'not an integer'
  return String(value)
}
