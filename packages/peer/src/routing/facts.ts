import type { BreakerState } from './breaker.ts'
import type { Meaning } from './intent/matcher.ts'
import type { Measured, Recent } from './measure.ts'
import type { Candidate, Query, Sla } from './query.ts'

/** What one choice is about, without the input itself: it may hold what belongs in no record. */
export interface Ask extends Query {
  /** `agent_id#capability` of the calls that wait for this one. */
  readonly path: readonly string[]
}

/**
 * Everything that a choice knows of one agent beside one capability. Plain data: from it alone, and what was drawn, the choice can be
 * made again.
 */
export interface Facts {
  readonly agentId: string
  /** Undefined where only the agent is asked about. */
  readonly capability: string | undefined
  /** It is the caller itself. */
  readonly self: boolean
  readonly status: Candidate['status']
  /** Last sign of life, wall clock, ms. */
  readonly heardAt: number
  /** What says that it offers it. */
  readonly offers: 'manifest' | 'presence' | 'nothing'
  /** Its manifest is known. */
  readonly described: boolean
  readonly labels: Candidate['labels']
  readonly breaker: BreakerState
  readonly load: number
  /** What it reports of itself, 0..1. */
  readonly reportedSuccess: number
  readonly measured: Measured
  /** Only with an SLA. */
  readonly recent?: Recent
  /** Calls that it runs at a time, where it says so. */
  readonly places?: number
  /** 1..5, where it says so. */
  readonly cost?: number
  /** What its manifest promises of its 99th percentile, ms. */
  readonly promisedP99Ms?: number
  /** Who vouches for it in this capability, among those whose word counts; absent when nobody does. */
  readonly endorsedBy?: readonly string[]
  /** It had the last call of this interaction, and `bound`: it made the plan that this call may confirm. */
  readonly affine: boolean
  readonly bound: boolean
  /** Only with an intent. */
  readonly meaning?: Meaning
  /** Directories that could not be asked for the capability, and how old the answer is that stands in for theirs, if there is one. */
  readonly stale?: { readonly sources: readonly string[]; readonly ageMs?: number }
  /** The rule of this agent's own policy that forbids to ask it. */
  readonly denied?: string
  /** Why its schema does not accept the input, where that was looked at. */
  readonly refusesInput?: string
}

/** Counts for an agent that says nothing of its cost. */
export const MIDDLE_COST = 3

/** Calls from which on a median, and a 99th percentile, tell something. */
const MEDIAN_CALLS = 5
const P99_CALLS = 20

/** Whether it is the right one to ask, were it there and well: why not, undefined when it is. */
export function misfit(facts: Facts, ask: Ask): string | undefined {
  const { capability, labels, described, offers, refusesInput, meaning } = facts
  if (capability === undefined) return undefined
  if (offers === 'nothing') return `does not provide ${capability}`
  for (const [label, wanted] of Object.entries(ask.where ?? {})) {
    if (!described) return 'its manifest is not known'
    const has = Object.hasOwn(labels, label) ? labels[label] : undefined
    const fits = typeof has === 'string' ? has === wanted : has?.includes(wanted)
    if (!fits)
      return has === undefined ? `has no label ${shown(label)}` : `${label} is ${shown([has].flat().join(', '))}`
  }
  if (refusesInput !== undefined) return refusesInput
  if (meaning?.refuses !== undefined) return `says that it does not do this: ${JSON.stringify(shown(meaning.refuses))}`
  if (meaning && meaning.near < meaning.least)
    return `means something else: ${nearness(meaning, 'near')}, ${least(meaning)} needed`
  return undefined
}

/** Why it is not asked, undefined when it may be. `best`: the most telling meaning among those that fit. */
export function leftOut(facts: Facts, ask: Ask, { best, band }: { best: number; band: number }): string | undefined {
  const { agentId, capability, self, status, breaker, meaning } = facts
  if (self) return 'it is the caller itself'
  if (status === 'offline') return `offline since ${hours(facts.heardAt)}`
  if (status === 'draining') return 'about to stop'
  if (capability === undefined) return undefined
  if (ask.path.includes(`${agentId}#${capability}`)) return `would wait for itself: ${ask.path.join(' → ')}`
  const unfit = misfit(facts, ask)
  if (unfit !== undefined) return unfit
  if (facts.denied !== undefined) return facts.denied
  // What is clearly further off is something else, and no substitute when the best one fails.
  if (meaning && meaning.telling < best * band) {
    return `another means it better: ${nearness(meaning, 'telling')} here, ${nearness({ ...meaning, telling: best }, 'telling')} there`
  }
  return keptAway(breaker) ?? (ask.sla && breaks(facts, ask.sla))
}

/** Why the breaker leaves an agent out, undefined when it does not. */
function keptAway(state: BreakerState): string | undefined {
  if (state.state === 'closed') return undefined
  if (state.state === 'open') {
    return `breaker open: ${state.because}; next probe in ${(state.probeInMs / 1000).toFixed(1)} s`
  }
  return state.probing ? `breaker half-open: ${state.because}; its one probe is under way` : undefined
}

/** The condition that it breaks, undefined when it breaks none. */
function breaks(facts: Facts, sla: Sla): string | undefined {
  const { recent, measured, reportedSuccess, cost = MIDDLE_COST, load, promisedP99Ms } = facts
  const { p50Ms, p99Ms, success, costLevel, load: most } = sla
  const slow = (name: string, has: number | undefined, calls: number, most?: number) =>
    most !== undefined && has !== undefined && (recent?.calls ?? 0) >= calls && has > most
      ? `${name} is ${Math.round(has)} ms, ${most} ms at most`
      : undefined
  const rate = measured.calls >= MEDIAN_CALLS ? measured.success : reportedSuccess
  return (
    slow('p50', recent?.p50Ms, MEDIAN_CALLS, p50Ms) ??
    slow('p99', recent?.p99Ms, P99_CALLS, p99Ms) ??
    (p99Ms !== undefined && promisedP99Ms !== undefined && (recent?.calls ?? 0) < P99_CALLS && promisedP99Ms > p99Ms
      ? `promises a p99 of ${promisedP99Ms} ms, ${p99Ms} ms at most`
      : undefined) ??
    (success !== undefined && rate < success ? `${percent(rate)} succeed, ${percent(success)} at least` : undefined) ??
    (costLevel !== undefined && cost > costLevel ? `cost level is ${cost}, ${costLevel} at most` : undefined) ??
    (most !== undefined && load > most ? `load is ${load}, ${most} at most` : undefined)
  )
}

/** Why a usable candidate ranks where it does. */
export function reasonsFor(facts: Facts): string[] {
  const { load, measured, places, affine, status, breaker, meaning, endorsedBy, stale } = facts
  const full = places !== undefined && measured.inFlight >= places
  return [
    ...(breaker.state === 'half-open' ? ['breaker half-open: its next call is the probe'] : []),
    ...(meaning && meaning.by !== 'name' ? [`means it: ${nearness(meaning, 'near')}`] : []),
    `load ${load}`,
    measured.p50Ms === undefined ? 'not measured yet' : `p50 ${Math.round(measured.p50Ms)} ms`,
    measured.calls === 0
      ? 'no calls from here yet'
      : `${percent(measured.success)} of ${measured.calls} calls (measured here)`,
    ...(full ? [`its ${places === 1 ? 'one place is' : `${places} places are`} taken from here`] : []),
    ...(measured.inFlight > 0 && !full ? [`${measured.inFlight} in flight from here`] : []),
    ...(affine ? ['had the last call of this interaction'] : []),
    ...(endorsedBy ? [`endorsed by ${endorsedBy.join(', ')}`] : []),
    ...(status === 'suspect' ? ['silent for a while'] : []),
    ...(stale ? [staleReason(stale)] : []),
  ]
}

/** That the choice was made from what was known before. */
export function staleReason({ sources, ageMs }: NonNullable<Facts['stale']>): string {
  const answer = ageMs === undefined ? '' : `, its answer is ${Math.round(ageMs / 1000)} s old`
  return `stale: ${sources.join(' and ')} cannot be reached${answer}`
}

const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`

function nearness(meaning: Meaning, what: 'near' | 'telling'): string {
  return meaning.by === 'embedding'
    ? `similarity ${meaning[what].toFixed(2)}`
    : `${Math.round(meaning[what] * 100)} % of the words`
}

const least = ({ by, least }: Meaning): string =>
  by === 'embedding' ? least.toFixed(2) : `${Math.round(least * 100)} %`

/** Local time, as a person reads it. */
function hours(at: number): string {
  return new Date(at).toTimeString().slice(0, 5)
}

/** Text of another agent, fit for a terminal and a log: one line, no control or direction characters, not long. */
function shown(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
  return plain.length <= 120 ? plain : `${plain.slice(0, 119)}…`
}
