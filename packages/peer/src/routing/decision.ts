import { HermesError } from '@hermes-peer/protocol'
import type { Random } from '../random.ts'
import { type Ask, type Facts, leftOut, misfit, reasonsFor, staleReason } from './facts.ts'
import type { Candidate } from './query.ts'
import { order, type Scored, scoreOf } from './rank.ts'
import type { Chosen, DecisionRecord, DecisionTunables } from './record.ts'

export interface Decision {
  /** Usable ones first, best first; then those left out. */
  readonly candidates: readonly Candidate[]
  record(at: number): DecisionRecord
}

/** Filters and orders, from the facts alone. */
export function decide(
  ask: Ask,
  facts: readonly Facts[],
  { random, tunables }: { random: Pick<Random, 'next'>; tunables: DecisionTunables },
): Decision {
  const draws: number[] = []
  const drawing = {
    next() {
      const drawn = random.next()
      draws.push(drawn)
      return drawn
    },
  }
  let best = 0
  for (const one of facts) {
    const { meaning } = one
    if (meaning && !one.self && meaning.telling > best && misfit(one, ask) === undefined) best = meaning.telling
  }
  const usable: Scored[] = []
  const left: Candidate[] = []
  for (const one of facts) {
    const why = leftOut(one, ask, { best, band: tunables.intentBand })
    if (why === undefined) usable.push({ facts: one, score: scoreFor(one, tunables) })
    else left.push(candidateOf(one, Number.NaN, why))
  }
  const ordered = order(usable, { random: drawing, tunables }).map(({ facts: one, score }) => candidateOf(one, score))
  return {
    candidates: [...ordered, ...left],
    record(at) {
      const { nearEqual, breakerProbeShare, newcomerShare, provenCalls, intentBand, candidatesKept } = tunables
      return {
        version: 1,
        at,
        ask,
        facts,
        draws,
        tunables: { nearEqual, breakerProbeShare, newcomerShare, provenCalls, intentBand, candidatesKept },
        chosen: ordered
          .slice(0, candidatesKept)
          .map(({ agentId, capability }) => ({ agentId, ...(capability === undefined ? {} : { capability }) })),
      }
    },
  }
}

/** Suspicion lowers preference only: nothing in flight is failed for it. */
function scoreFor(facts: Facts, tunables: DecisionTunables): number {
  const score = scoreOf(facts, tunables)
  return facts.status === 'suspect' ? score * 0.5 : score
}

function candidateOf(facts: Facts, score: number, left?: string): Candidate {
  const { agentId, capability, load, measured, labels, status, meaning } = facts
  return {
    agentId,
    capability,
    score,
    usable: left === undefined,
    // Put into words only when somebody reads them: this runs for every candidate of every call.
    get reasons() {
      if (left === undefined) return reasonsFor(facts)
      return facts.stale ? [left, staleReason(facts.stale)] : [left]
    },
    load,
    p50Ms: measured.p50Ms,
    measured: measured.calls,
    success: measured.success,
    near: meaning?.near,
    labels,
    status,
    stale: facts.stale !== undefined,
  }
}

/**
 * Makes a choice again from its record, which may have been written as JSON and read back: the same filters, scores and draws, so that
 * the same candidates come out, with their reasons; `same` says whether the same were chosen. Throws `INVALID_OPTION` for what is no record.
 */
export function rerun(record: DecisionRecord): {
  readonly candidates: readonly Candidate[]
  readonly chosen: readonly Chosen[]
  readonly same: boolean
} {
  const { version, ask, facts, draws, tunables, at } = (record ?? {}) as Partial<DecisionRecord>
  const sound = Array.isArray(facts) && Array.isArray(draws) && Array.isArray(record.chosen) && ask && tunables
  if (version !== 1 || !sound) {
    throw new HermesError('INVALID_OPTION', {
      message: 'record must be the record of a decision, version 1',
      details: { field: 'record' },
    })
  }
  let next = 0
  const made = decide(ask, facts, { random: { next: () => draws[next++] ?? 0 }, tunables })
  const { chosen } = made.record(at ?? 0)
  return { candidates: made.candidates, chosen, same: JSON.stringify(chosen) === JSON.stringify(record.chosen) }
}
