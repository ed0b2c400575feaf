/** Most containers (objects and lists) that may stand inside one another in a payload. */
export const MAX_DEPTH = 32

/** Most keys of all objects of a payload together: what a duplicate check and a policy walk may cost. */
export const MAX_KEYS = 10_000

/**
 * Most values of a payload together, containers and what is in them: a container of two bytes takes twenty and more in memory, so
 * that bytes alone bound nothing. A million is an embedding of a long book, or a table that belongs into a file.
 */
export const MAX_VALUES = 1_000_000

/** Largest payload, bytes: what a stream may carry when an envelope is too small for it. */
export const MAX_PAYLOAD_BYTES = 64 * 1024 * 1024

/** Largest magnitude of an integer; beyond it a JavaScript number no longer tells neighbours apart. */
export const MAX_INTEGER = Number.MAX_SAFE_INTEGER

/** Keys that reach an object's prototype in careless code, so that they are data nowhere. */
export function isForbiddenKey(key: string): boolean {
  return key === '__proto__' || key === 'constructor' || key === 'prototype'
}
