import { show } from '../payload/pointer.ts'
import type { JsonValue } from '../payload/value.ts'
import type { Place, Run } from './node.ts'

// Values of keywords, checked while a schema is prepared. Each throws `INVALID_CONTRACT` that names the keyword.

export function naturalOf(place: Place, keyword: string): number {
  const value = place.schema[keyword]
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  return place.refuse('is not an integer of 0 or more', keyword)
}

export function numberOf(place: Place, keyword: string): number {
  const value = place.schema[keyword]
  return typeof value === 'number' ? value : place.refuse('is not a number', keyword)
}

export function listOf(place: Place, keyword: string): readonly JsonValue[] {
  const value = place.schema[keyword]
  return Array.isArray(value) && value.length > 0 ? value : place.refuse('is not a list of one or more', keyword)
}

export function textsOf(place: Place, ...steps: [string, ...string[]]): readonly string[] {
  let value: unknown = place.schema
  for (const step of steps) value = (value as Record<string, unknown>)[step]
  const sound = Array.isArray(value) && value.every((item) => typeof item === 'string')
  return sound ? (value as string[]) : place.refuse('is not a list of texts', ...steps)
}

/** Keys of a keyword whose value is an object. */
export function keysOf(place: Place, keyword: string): readonly string[] {
  const value = place.schema[keyword]
  const sound = typeof value === 'object' && value !== null && !Array.isArray(value)
  return sound ? Object.keys(value) : place.refuse('is not an object', keyword)
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Keys of a value; listing them is work too. */
export function keysIn(value: object, run: Run): readonly string[] {
  const keys = Object.keys(value)
  run.spend(keys.length * 2)
  return keys
}

/** A value for a message: short, and safe to show. */
export function brief(value: unknown): string {
  return show(JSON.stringify(value) ?? String(value))
}
