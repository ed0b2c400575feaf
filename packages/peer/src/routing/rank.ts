import type { Tunables } from '../defaults.ts'
import type { Random } from '../random.ts'
import { type Facts, MIDDLE_COST } from './facts.ts'
import type { Measured } from './measure.ts'
import type { DecisionTunables } from './record.ts'

/** A newcomer counts as half as fast as the formula can tell, so that it has no crown to begin with. */
const NEWCOMER_P50_MS = 500

export interface Rated {
  readonly load: number
  readonly measured: Measured
  /** What the peer reports of itself, 0..1. */
  readonly reportedSuccess: number
  /** The last call of this interaction went there. */
  readonly affine: boolean
  readonly endorsedBy?: readonly string[]
}

/**
 * `0.4·(1 − load/100) + 0.3·(1 − min(p50 / 1 s, 1)) + 0.2·success + 0.1·affinity`, and 0.1 more when somebody whose word counts
 * vouches for it, however many do. Success is what was measured here, blended with
 * what the peer reports while little has been measured.
 */
export function scoreOf(
  { load, measured, reportedSuccess, affine, endorsedBy }: Rated,
  { provenCalls }: Pick<Tunables, 'provenCalls'>,
): number {
  const p50 = measured.p50Ms ?? NEWCOMER_P50_MS
  const own = Math.min(1, measured.calls / provenCalls)
  const success = own * measured.success + (1 - own) * Math.min(reportedSuccess, 1)
  return 0.4 * (1 - load / 100) + latencyPart(p50) + 0.2 * success + (affine ? 0.1 : 0) + (endorsedBy ? 0.1 : 0)
}

const latencyPart = (p50Ms: number): number => 0.3 * (1 - Math.min(p50Ms / 1000, 1))

/** One that may be asked. */
export interface Scored {
  readonly facts: Facts
  readonly score: number
}

/**
 * Orders the usable candidates for one call. Among near-equals of the best, two are drawn and the one with the smaller share of its
 * places taken goes first, so that callers with the same stale load report do not all run to one agent. Who has no free place comes
 * behind who has; who has hardly been asked yet gets a small share of the calls.
 */
export function order(
  scored: readonly Scored[],
  options: { random: Pick<Random, 'next'>; tunables: DecisionTunables },
): Scored[] {
  const bound = scored.filter(({ facts }) => facts.bound)
  const others = scored.filter(({ facts }) => !facts.bound)
  // Somebody has to try it, or it would never come back.
  const probes = others.filter(({ facts }) => facts.breaker.state === 'half-open')
  const well = others.filter(({ facts }) => facts.breaker.state !== 'half-open')
  const settled = [
    ...orderEquals(
      well.filter((one) => !isFull(one)),
      options,
    ),
    ...orderEquals(well.filter(isFull), options),
  ]
  const tried = orderEquals(probes, options)
  const first = tried.length > 0 && options.random.next() < options.tunables.breakerProbeShare
  return [...bound, ...(first ? [...tried, ...settled] : [...settled, ...tried])]
}

/** As many calls from here are in flight as it runs at a time. */
function isFull({ facts: { places, measured } }: Scored): boolean {
  return places !== undefined && measured.inFlight >= places
}

const costOf = ({ facts }: Scored): number => facts.cost ?? MIDDLE_COST

function orderEquals(
  scored: readonly Scored[],
  { random, tunables }: { random: Pick<Random, 'next'>; tunables: DecisionTunables },
): Scored[] {
  const sorted = scored.toSorted((a, b) => b.score - a.score || costOf(a) - costOf(b))
  if (sorted.length <= 1) return sorted
  const isNew = ({ facts }: Scored) => facts.measured.calls < tunables.provenCalls
  const calls = sorted.reduce((sum, { facts }) => sum + facts.measured.calls, 0)
  // Who has hardly called anybody knows nobody better: the first one that answered would get everything.
  const young = calls < 2 * tunables.provenCalls * sorted.length
  const newcomers = young ? [] : sorted.filter(isNew)
  const proven = sorted.filter((item) => !newcomers.includes(item))
  let first: Scored
  if (newcomers.length > 0 && (proven.length === 0 || random.next() < tunables.newcomerShare)) {
    first = draw(newcomers, evenly, random)
  } else {
    // However well a newcomer looks, it has no more than its share.
    const score = young ? hopeful(proven) : ({ score }: Scored) => score
    const best = proven.reduce((most, item) => Math.max(most, score(item)), Number.NEGATIVE_INFINITY)
    const equals = proven.filter((item) => best - score(item) <= tunables.nearEqual)
    const size = sizes(equals)
    const one = draw(equals, size, random)
    const other = draw(equals, size, random)
    first = lessBusy(one, other, size)
  }
  return [first, ...proven.filter((item) => item !== first), ...newcomers.filter((item) => item !== first)]
}

/** The score of an agent of which no latency is known as if it were as fast as the fastest. */
function hopeful(items: readonly Scored[]): (item: Scored) => number {
  const fastest = items.reduce((least, { facts }) => Math.min(least, facts.measured.p50Ms ?? least), NEWCOMER_P50_MS)
  return ({ score, facts }) =>
    facts.measured.p50Ms === undefined ? score + latencyPart(fastest) - latencyPart(NEWCOMER_P50_MS) : score
}

/** How much it can do at a time, beside the others; who does not say counts as the mean of those who do. */
type Size = (item: Scored) => number
const evenly: Size = () => 1

function sizes(items: readonly Scored[]): Size {
  const told = items.flatMap(({ facts }) => facts.places ?? [])
  if (told.length === 0) return evenly
  const mean = told.reduce((sum, one) => sum + one, 0) / told.length
  return ({ facts }) => facts.places ?? mean
}

function draw(items: readonly Scored[], size: Size, random: Pick<Random, 'next'>): Scored {
  let left = random.next() * items.reduce((sum, item) => sum + size(item), 0)
  for (const item of items) {
    left -= size(item)
    if (left < 0) return item
  }
  return items.at(-1) as Scored
}

/** The first that was drawn, unless the other is less busy, and still is with one call more: places are no fractions. */
function lessBusy(one: Scored, other: Scored, size: Size): Scored {
  const busy = (item: Scored, more: number) => (item.facts.measured.inFlight + more) / size(item)
  if (busy(one, 0) !== busy(other, 0)) {
    return busy(other, 0) < busy(one, 0) && busy(other, 0.5) < busy(one, 0.5) ? other : one
  }
  // The draw has favoured the larger one already; of equals in size the better and the cheaper one goes first.
  if (size(one) !== size(other)) return one
  if (one.score !== other.score) return one.score > other.score ? one : other
  return costOf(one) <= costOf(other) ? one : other
}
