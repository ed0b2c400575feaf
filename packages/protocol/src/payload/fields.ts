import { invalidPayload } from './refusal.ts'
import { isJsonObject, type JsonObject, type JsonValue } from './value.ts'

// Checks of single fields; each throws `INVALID_PAYLOAD` that names the field. `within` is the way to their object.

export function objectOf(payload: JsonValue, what: string): JsonObject {
  if (!isJsonObject(payload)) throw invalidPayload([], `${what} has an object as its payload`)
  return payload
}

export function refuse(field: string, why: string, within: readonly string[] = []): never {
  throw invalidPayload([...within, field], why)
}

interface IntegerRange {
  readonly least: number
  /** Default 2^53 − 1. */
  readonly most?: number
}

export function checkInteger(fields: JsonObject, field: string, range: IntegerRange, within?: readonly string[]): void {
  const value = fields[field]
  const { least, most = Number.MAX_SAFE_INTEGER } = range
  if (!Number.isSafeInteger(value) || (value as number) < least || (value as number) > most) {
    refuse(field, `is not an integer from ${least} to ${most}`, within)
  }
}

export function checkPattern(fields: JsonObject, field: string, form: RegExp): void {
  const value = fields[field]
  if (typeof value !== 'string' || !form.test(value)) refuse(field, `does not match ${form.source}`)
}
