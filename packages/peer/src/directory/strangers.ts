import type { Clock } from '../clock.ts'

/** How many reports of agents that are not admitted here are looked at: each costs a curve check, and anybody can make keys. */
export interface Strangers {
  /** Whether one more, handed on by that neighbour, may be looked at in this window. */
  take(neighbour: string): boolean
}

export interface StrangersOptions {
  readonly clock: Clock
  readonly windowMs: number
  readonly perNeighbour: number
  readonly inAll: number
}

export function createStrangers({ clock, windowMs, perNeighbour, inAll }: StrangersOptions): Strangers {
  /** By neighbour, of this window: bounded by the connections there may be, and by the bound of all. */
  const counts = new Map<string, number>()
  let since = Number.NEGATIVE_INFINITY
  let all = 0
  return {
    take(neighbour) {
      const now = clock.monotonic()
      if (now - since > windowMs) {
        since = now
        all = 0
        counts.clear()
      }
      const own = counts.get(neighbour) ?? 0
      if (own >= perNeighbour || all >= inAll) return false
      counts.set(neighbour, own + 1)
      all++
      return true
    },
  }
}
