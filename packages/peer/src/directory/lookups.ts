import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'

export interface LookupsOptions {
  readonly clock: Clock
  readonly tunables: Tunables
  /** Searches until done or aborted. */
  search(capability: string, signal: AbortSignal): Promise<void>
}

/** Decides when the DHT is asked for a capability, and asks once at a time. */
export interface Lookups {
  /**
   * The running look-up, a new one when the last is too old, or undefined while that is fresh. `force`: nobody usable is known, so
   * nothing is fresh enough.
   */
  run(capability: string, force: boolean): Promise<void> | undefined
  stop(): void
}

/** Capabilities whose last look-up is remembered. */
const MOST = 1000

export function createLookups({ clock, tunables, search }: LookupsOptions): Lookups {
  const last = new LRUCache<string, number>({ maxSize: MOST, sizeCalculation: () => 1 })
  const running = new Map<string, { done: Promise<void>; stop: AbortController }>()

  const begin = (capability: string): Promise<void> => {
    const stop = new AbortController()
    const timer = clock.after(tunables.lookupTimeoutMs, () => stop.abort())
    last.set(capability, clock.monotonic())
    const done = search(capability, stop.signal)
      .catch(() => undefined)
      .finally(() => {
        clock.clear(timer)
        running.delete(capability)
      })
    running.set(capability, { done, stop })
    return done
  }

  return {
    run(capability, force) {
      const under = running.get(capability)
      if (under) return under.done
      const at = last.get(capability)
      if (!force && at !== undefined && clock.monotonic() - at < tunables.lookupFreshMs) return undefined
      return begin(capability)
    },
    stop() {
      for (const { stop } of running.values()) stop.abort()
    },
  }
}
