/** The data that a payload may carry, in JSON and in MessagePack alike. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject

export interface JsonObject {
  readonly [key: string]: JsonValue
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Freezes plain data to its leaves and returns it; what is frozen already is taken to be frozen to its leaves. What is no plain
 * data, as a schema may make it, is left as it is: bytes cannot be frozen, and dates and maps change all the same.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  const list = Array.isArray(value)
  const prototype: unknown = list ? null : Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  // First itself, so that data which contains itself comes to an end.
  Object.freeze(value)
  if (list) for (let i = 0; i < value.length; i++) deepFreeze(value[i])
  else for (const key of Object.keys(value)) deepFreeze((value as Record<string, unknown>)[key])
  return value
}
