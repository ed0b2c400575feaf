import { isForbiddenKey } from './limits.ts'
import { invalidPayload } from './refusal.ts'

interface Walk {
  keys: number
  /** The way to the value in hand; only as much of it as the depth says is current. */
  readonly trail: (string | number)[]
}

/**
 * Counts the keys of data as a parser built it, and turns -0 into 0 in place. Throws `INVALID_PAYLOAD` at a forbidden
 * key and at a number that overflowed. The data must be ours alone, and its nesting within the limit.
 */
export function tally(data: object): number {
  const walk: Walk = { keys: 0, trail: [] }
  visit(data, 0, walk)
  return walk.keys
}

/** The number as data holds it: -0 is 0. Throws as {@link tally} does. */
export function plainNumber(value: number, path: readonly (string | number)[] = []): number {
  if (value - value !== 0) throw invalidPayload(path, 'a number is too large for a double; send it as a string')
  return value === 0 ? 0 : value
}

function visit(node: object, depth: number, walk: Walk): void {
  if (Array.isArray(node)) {
    for (let i = 0; i < node.length; i++) {
      const value: unknown = node[i]
      if (typeof value === 'object') {
        if (value === null) continue
        walk.trail[depth] = i
        visit(value, depth + 1, walk)
      } else if (typeof value === 'number' && isOdd(value)) {
        node[i] = plainNumber(value, [...walk.trail.slice(0, depth), i])
      }
    }
    return
  }
  const keys = Object.keys(node)
  walk.keys += keys.length
  for (const key of keys) {
    if (isForbiddenKey(key))
      throw invalidPayload([...walk.trail.slice(0, depth), key], 'this key is not allowed in data')
    const value = (node as Record<string, unknown>)[key]
    if (typeof value === 'object') {
      if (value === null) continue
      walk.trail[depth] = key
      visit(value, depth + 1, walk)
    } else if (typeof value === 'number' && isOdd(value)) {
      const path = [...walk.trail.slice(0, depth), key]
      ;(node as Record<string, unknown>)[key] = plainNumber(value, path)
    }
  }
}

/** NaN, an infinity, or -0. */
function isOdd(value: number): boolean {
  return value - value !== 0 || (value === 0 && 1 / value < 0)
}
