import { isMap } from './compact.ts'
import type { Json, JsonMap } from './json.ts'
import { type Fault, Refused } from './refused.ts'

/** Says whether a value may stand in a field. */
export type Test = (value: Json) => boolean

export const isText =
  (most = Number.POSITIVE_INFINITY): Test =>
  (value) =>
    typeof value === 'string' && value.length <= most

export const isWhole =
  (from = 0, to = Number.MAX_SAFE_INTEGER): Test =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to

export const isOneOf =
  (...allowed: Json[]): Test =>
  (value) =>
    allowed.includes(value)

export const isListOf =
  (test: Test, most: number): Test =>
  (value) =>
    Array.isArray(value) && value.length <= most && value.every(test)

/** An object that has these fields at least. */
export const isObjectOf =
  (fields: { [field: string]: Test }): Test =>
  (value) =>
    isMap(value) && Object.entries(fields).every(([field, test]) => has(value, field, test))

/** Bytes in base64url without padding, in its one spelling. */
export const isBase64url =
  (length?: number): Test =>
  (value) => {
    if (typeof value !== 'string') return false
    const bytes = Buffer.from(value, 'base64url')
    return bytes.toString('base64url') === value && (length === undefined || bytes.length === length)
  }

/** A field whose name ends in `?` may be left out. */
const has = (map: JsonMap, field: string, test: Test): boolean => {
  const name = field.replace(/\?$/, '')
  const value = Object.hasOwn(map, name) ? map[name] : undefined
  return value === undefined ? name !== field : test(value)
}

/** The first field that is missing or wrong refuses the whole; fields that are not asked for are ignored. */
export function checkFields(value: Json, fields: { [field: string]: Test }, fault: Fault): JsonMap {
  if (!isMap(value)) throw new Refused(fault, 'not an object')
  for (const [field, test] of Object.entries(fields)) {
    if (!has(value, field, test)) throw new Refused(fault, `${field} is ${JSON.stringify(value[field])}`)
  }
  return value
}
