import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'

/** What this peer has measured of one capability at one agent. */
export interface Measured {
  /** Calls that ended, from here. */
  readonly calls: number
  /** Moving share of them that succeeded, 0..1; 1 before the first. */
  readonly success: number
  /** Median of the last successful ones, ms; undefined before the first. */
  readonly p50Ms: number | undefined
  /** Calls from here that it has not answered yet. */
  readonly inFlight: number
}

/** Successful calls of the last minutes. */
export interface Recent {
  readonly calls: number
  readonly p50Ms?: number
  readonly p99Ms?: number
}

/** Local measurements: what ranking trusts most. At most 10,000 pairs of agent and capability, the longest unused go first. */
export interface Measurements {
  read(agentId: string, capability: string): Measured
  /** Latency of the calls of the last `slaWindowMs`: what is older counts no more, so that whoever was slow is tried again. */
  recent(agentId: string, capability: string): Recent
  begin(agentId: string, capability: string): void
  end(agentId: string, capability: string, succeeded: boolean, ms: number): void
  /** It was called off: no longer in flight, and nothing is learned. */
  cancel(agentId: string, capability: string): void
  /** What was measured is void, so that it counts as a newcomer; what is in flight stays so. */
  forget(agentId: string, capability: string): void
}

interface Entry {
  calls: number
  success: number
  samples: number[]
  /** When each sample was taken, monotonic ms. */
  taken: number[]
  next: number
  inFlight: number
  p50: number | undefined
}

const NOTHING: Measured = { calls: 0, success: 1, p50Ms: undefined, inFlight: 0 }

export function createMeasurements({ tunables, clock }: { tunables: Tunables; clock: Clock }): Measurements {
  const entries = new LRUCache<string, Entry>({ maxSize: 10_000, sizeCalculation: () => 1 })
  const entry = (agentId: string, capability: string): Entry => {
    const key = `${agentId}#${capability}`
    let found = entries.get(key)
    if (!found) {
      found = { calls: 0, success: 1, samples: [], taken: [], next: 0, inFlight: 0, p50: undefined }
      entries.set(key, found)
    }
    return found
  }
  return {
    read(agentId, capability) {
      const found = entries.get(`${agentId}#${capability}`)
      if (!found) return NOTHING
      found.p50 ??= median(found.samples)
      return { calls: found.calls, success: found.success, p50Ms: found.p50, inFlight: found.inFlight }
    },
    recent(agentId, capability) {
      const found = entries.get(`${agentId}#${capability}`)
      const since = clock.monotonic() - tunables.slaWindowMs
      const samples = found?.samples.filter((_, index) => (found.taken[index] as number) >= since) ?? []
      const calls = samples.length
      if (calls === 0) return { calls }
      samples.sort((a, b) => a - b)
      return { calls, p50Ms: samples[calls >> 1] as number, p99Ms: samples[Math.ceil(calls * 0.99) - 1] as number }
    },
    begin(agentId, capability) {
      entry(agentId, capability).inFlight++
    },
    cancel(agentId, capability) {
      const found = entry(agentId, capability)
      found.inFlight = Math.max(0, found.inFlight - 1)
    },
    forget(agentId, capability) {
      const found = entries.get(`${agentId}#${capability}`)
      if (found) Object.assign(found, { calls: 0, success: 1, samples: [], taken: [], next: 0, p50: undefined })
    },
    end(agentId, capability, succeeded, ms) {
      const found = entry(agentId, capability)
      found.inFlight = Math.max(0, found.inFlight - 1)
      found.calls++
      found.success += tunables.successWeight * ((succeeded ? 1 : 0) - found.success)
      if (!succeeded) return
      found.samples[found.next] = ms
      found.taken[found.next] = clock.monotonic()
      found.next = (found.next + 1) % tunables.latencySamples
      found.p50 = undefined
    },
  }
}

function median(samples: readonly number[]): number | undefined {
  if (samples.length === 0) return undefined
  return samples.toSorted((a, b) => a - b)[samples.length >> 1]
}
