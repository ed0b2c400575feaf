import type { Run } from './node.ts'

/** Levels of data beyond which no two values are taken to be equal; payloads have at most 32. */
const MAX_LEVELS = 64

// Measured against what a step is elsewhere: making texts costs more than looking.
const STEPS_OF_A_VALUE = 6
const STEPS_OF_A_CONTAINER = 16

/**
 * A text that two JSON values share when, and only when, they are equal: numbers by value, objects whatever the order
 * of their keys. Linear in the size of the value, so that no list has to be compared with itself pair by pair.
 */
export function canonicalText(value: unknown, run: Run, level = 0): string {
  if (level > MAX_LEVELS) run.spend(Number.POSITIVE_INFINITY)
  if (typeof value === 'string') {
    run.spend(STEPS_OF_A_VALUE + value.length / 8)
    return JSON.stringify(value)
  }
  if (typeof value !== 'object' || value === null) {
    run.spend(STEPS_OF_A_VALUE)
    return Object.is(value, -0) ? '0' : String(value)
  }
  run.spend(STEPS_OF_A_CONTAINER)
  if (Array.isArray(value)) return `[${value.map((item) => canonicalText(item, run, level + 1)).join()}]`
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalText(item, run, level + 1)}`).join()}}`
}
