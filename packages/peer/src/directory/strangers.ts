import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'

/** How many reports of agents that are not admitted here are looked at: each costs a curve check, and anybody can make keys. */
export interface Strangers {
  /** Whether one more, handed on by that neighbour, may be looked at in this window. */
  take(neighbour: string): boolean
}

export function createStrangers({ clock, tunables }: { clock: Clock; tunables: Tunables }): Strangers {
  /** By neighbour, of this window: bounded by the connections there may be, and by the bound of all. */
  const counts = new Map<string, number>()
  let since = Number.NEGATIVE_INFINITY
  let all = 0
  return {
    take(neighbour) {
      const now = clock.monotonic()
      if (now - since > tunables.presenceWindowMs) {
        since = now
        all = 0
        counts.clear()
      }
      const own = counts.get(neighbour) ?? 0
      if (own >= tunables.presenceStrangers || all >= tunables.presenceStrangersPerNode) return false
      counts.set(neighbour, own + 1)
      all++
      return true
    },
  }
}
