import type { Timeline } from '../clock/timeline.ts'
import type { SeededRandom } from '../random/seeded-random.ts'
import type { Range } from './settings.ts'

/** A time during which everything between two peers takes longer. */
export interface Spike {
  readonly extraMs: number
  readonly until: number
}

/** What lies between two peers, whatever connections they have: how long it takes, and whether anything passes. */
export interface Paths {
  /** One way, ms, with a little jitter; without spikes. */
  latency(a: string, b: string): number
  spike(a: string, b: string): Spike | undefined
  addSpike(a: string, b: string, spike: Spike): void
  /** Whether a partition, or a wall, lies between them. */
  separated(a: string, b: string): boolean
  /** Puts a wall between two peers alone. */
  wall(a: string, b: string): void
  /** Takes all walls away. */
  open(): void
  /** Peers in no group form one more group together. An empty list heals. */
  separate(groups: readonly (readonly string[])[]): void
}

export function createPaths(options: { timeline: Timeline; random: SeededRandom; latencyMs: Range }): Paths {
  return new SeededPaths(options.timeline, options.random, options.latencyMs)
}

/** Most of a path's latency that one frame may take longer than another. */
const JITTER = 0.25

class SeededPaths implements Paths {
  readonly #timeline: Timeline
  readonly #random: SeededRandom
  readonly #range: Range
  /** Both bounded by the pairs of peers that a test makes. */
  readonly #latencies = new Map<string, number>()
  readonly #spikes = new Map<string, Spike>()
  /** Bounded by the pairs of peers that a test makes. */
  readonly #walls = new Set<string>()
  #groups = new Map<string, number>()

  constructor(timeline: Timeline, random: SeededRandom, range: Range) {
    this.#timeline = timeline
    this.#random = random
    this.#range = range
  }

  latency(a: string, b: string): number {
    const pair = pairOf(a, b)
    let base = this.#latencies.get(pair)
    if (base === undefined) {
      // From the pair's own stream, so that one more peer leaves all other latencies as they were.
      base = this.#random.fork(pair).between(this.#range.min, this.#range.max)
      this.#latencies.set(pair, base)
    }
    return base * this.#random.between(1, 1 + JITTER)
  }

  spike(a: string, b: string): Spike | undefined {
    const pair = pairOf(a, b)
    const spike = this.#spikes.get(pair)
    if (spike && spike.until <= this.#timeline.now()) {
      this.#spikes.delete(pair)
      return undefined
    }
    return spike
  }

  addSpike(a: string, b: string, spike: Spike): void {
    this.#spikes.set(pairOf(a, b), spike)
  }

  separated(a: string, b: string): boolean {
    return this.#groups.get(a) !== this.#groups.get(b) || this.#walls.has(pairOf(a, b))
  }

  wall(a: string, b: string): void {
    this.#walls.add(pairOf(a, b))
  }

  open(): void {
    this.#walls.clear()
  }

  separate(groups: readonly (readonly string[])[]): void {
    this.#groups = new Map(groups.flatMap((group, index) => group.map((peerId) => [peerId, index] as const)))
  }
}

function pairOf(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`
}
