import type { Tunables } from '../defaults.ts'
import type { Random } from '../random.ts'
import type { Measured } from './measure.ts'
import type { Candidate } from './query.ts'

/** Calls after which an agent is no newcomer any more. */
export const PROVEN_CALLS = 5
/** Share of calls that go to a newcomer although a proven agent scores higher. */
const NEWCOMER_SHARE = 0.05
/** A newcomer counts as half as fast as the formula can tell, so that it has no crown to begin with. */
const NEWCOMER_P50_MS = 500

export interface Rated {
  readonly load: number
  readonly measured: Measured
  /** What the peer reports of itself, 0..1. */
  readonly reportedSuccess: number
  /** The last call of this interaction went there. */
  readonly affine: boolean
}

/**
 * `0.4·(1 − load/100) + 0.3·(1 − min(p50 / 1 s, 1)) + 0.2·success + 0.1·affinity`. Success is what was measured here, blended with
 * what the peer reports while little has been measured.
 */
export function scoreOf({ load, measured, reportedSuccess, affine }: Rated): number {
  const p50 = measured.p50Ms ?? NEWCOMER_P50_MS
  const own = Math.min(1, measured.calls / PROVEN_CALLS)
  const success = own * measured.success + (1 - own) * Math.min(reportedSuccess, 1)
  return 0.4 * (1 - load / 100) + 0.3 * (1 - Math.min(p50 / 1000, 1)) + 0.2 * success + (affine ? 0.1 : 0)
}

/** A candidate, and how many calls from here it has not answered. */
export interface Scored {
  readonly candidate: Candidate
  readonly inFlight: number
  /** Cost level of its capability, 1..5; 3 where it says none. */
  readonly cost: number
  /** As many calls from here are in flight as it runs at a time. */
  readonly full: boolean
  /** It made the plan that this call may confirm: nobody else knows of it. */
  readonly bound?: boolean
  /** Its breaker waits for a probe: somebody has to try it, or it would never come back. */
  readonly probe?: boolean
}

/**
 * Orders the usable candidates for one call. Among near-equals of the best, two are drawn and the one with less in flight goes
 * first, so that callers with the same stale load report do not all run to one agent. Who has no free place comes behind who has.
 */
export function order(scored: readonly Scored[], options: { random: Random; tunables: Tunables }): Candidate[] {
  const bound = scored.filter((item) => item.bound)
  const probes = scored.filter((item) => !item.bound && item.probe)
  const free = scored.filter((item) => !item.bound && !item.probe && !item.full)
  const full = scored.filter((item) => !item.bound && !item.probe && item.full)
  const proven = [...orderEquals(free, options), ...orderEquals(full, options)]
  const tried = orderEquals(probes, options)
  const first = tried.length > 0 && options.random.next() < options.tunables.breakerProbeShare
  return [...bound.map(({ candidate }) => candidate), ...(first ? [...tried, ...proven] : [...proven, ...tried])]
}

function orderEquals(
  scored: readonly Scored[],
  { random, tunables }: { random: Random; tunables: Tunables },
): Candidate[] {
  const sorted = scored.toSorted((a, b) => b.candidate.score - a.candidate.score || a.cost - b.cost)
  const best = sorted[0]
  if (!best || sorted.length === 1) return sorted.map(({ candidate }) => candidate)
  const newcomers = sorted.filter(({ candidate }) => candidate.measured < PROVEN_CALLS)
  const equals = sorted.filter(({ candidate }) => best.candidate.score - candidate.score <= tunables.nearEqual)
  let first: Scored
  if (newcomers.length > 0 && newcomers.length < sorted.length && random.next() < NEWCOMER_SHARE) {
    first = draw(newcomers, random)
  } else {
    const one = draw(equals, random)
    const other = draw(equals, random)
    first = lessBusy(one, other)
  }
  return [first.candidate, ...sorted.filter((item) => item !== first).map(({ candidate }) => candidate)]
}

function draw(items: readonly Scored[], random: Random): Scored {
  return items[Math.min(items.length - 1, Math.floor(random.next() * items.length))] as Scored
}

function lessBusy(one: Scored, other: Scored): Scored {
  if (one.inFlight !== other.inFlight) return one.inFlight < other.inFlight ? one : other
  if (one.candidate.score !== other.candidate.score) return one.candidate.score > other.candidate.score ? one : other
  return one.cost <= other.cost ? one : other
}
