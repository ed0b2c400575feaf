import { type CapabilityEntry, HermesError } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Directory, Entry, FindOptions } from '../directory/directory.ts'
import type { Random } from '../random.ts'
import type { Breaker, BreakerState } from './breaker.ts'
import type { Measured, Measurements } from './measure.ts'
import type { Candidate, Query } from './query.ts'
import { order, type Scored, scoreOf } from './rank.ts'
import { createSchemaFilter, type GivenInput } from './schema-filter.ts'

/** What one call asks of routing, beside the query. */
export interface Need extends Query {
  /** The input as it is sent; left out when nothing is sent yet. */
  readonly input?: GivenInput
  /** `agent_id#capability` of the calls that wait for this one. */
  readonly path: readonly string[]
  /** The interaction, for affinity. */
  readonly correlationId?: string
}

export interface Ranking {
  /** Usable ones first, best first; then those left out. */
  readonly candidates: readonly Candidate[]
}

/** Finds who could serve a call, filters, ranks and explains. */
export interface Router {
  /** Rejects with `NO_CANDIDATE` or `CALL_CYCLE` that carry the whole explanation in `details.candidates`. */
  choose(need: Need, options: FindOptions): Promise<readonly Candidate[]>
  rank(need: Need, options: FindOptions): Promise<Ranking>
  /** The capability as the agent's manifest describes it, if that is known. */
  entry(agentId: string, capability: string): CapabilityEntry | undefined
  /** The interaction's last call went there; `plan`: it answered with a plan that waits for confirmation, so the next one goes there too. */
  remember(correlationId: string, agentId: string, plan: boolean): void
}

export interface RouterOptions {
  readonly agentId: string
  readonly directory: Directory
  readonly measurements: Measurements
  readonly breaker: Pick<Breaker, 'read'>
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
}

/** Counts for an agent that says nothing of its cost. */
const MIDDLE_COST = 3
/** Interactions remembered for affinity. */
const MOST_INTERACTIONS = 1000

export function createRouter(options: RouterOptions): Router {
  const { agentId, directory, measurements, breaker, random, tunables } = options
  const acceptsInput = createSchemaFilter()
  const affinity = new LRUCache<string, { agentId: string; plan: boolean }>({
    maxSize: MOST_INTERACTIONS,
    sizeCalculation: () => 1,
  })

  const entryOf = (entry: Entry, capability: string): CapabilityEntry | undefined =>
    entry.manifest?.capabilities.find(({ name }) => name === capability)

  /** Why it cannot serve this, undefined when it can. */
  const excluded = (entry: Entry, need: Need): string | undefined => {
    const { capability, where, path, input } = need
    if (entry.agentId === agentId) return 'it is the caller itself'
    if (entry.status === 'offline') return 'offline'
    if (entry.status === 'draining') return 'about to stop'
    if (!capability) return undefined
    if (path.includes(`${entry.agentId}#${capability}`)) return `would wait for itself: ${path.join(' → ')}`
    const described = entryOf(entry, capability)
    if (entry.manifest && !described) return `does not provide ${capability}`
    if (!described && !entry.capabilities.includes(capability)) return `does not provide ${capability}`
    if (where && Object.keys(where).length > 0) {
      if (!described) return 'its manifest is not known'
      for (const [label, wanted] of Object.entries(where)) {
        const has = described.labels[label]
        const fits = typeof has === 'string' ? has === wanted : has?.includes(wanted)
        if (!fits) return has === undefined ? `has no label ${label}` : `${label} is ${[has].flat().join(', ')}`
      }
    }
    if (input && described) {
      const refusal = acceptsInput(described, input)
      if (refusal) return refusal
    }
    return keptAway(breaker.read(entry.agentId, capability))
  }

  const describe = (entry: Entry, need: Need): Scored => {
    const capability = need.capability ?? ''
    const measured = measurements.read(entry.agentId, capability)
    const left = excluded(entry, need)
    const described = entryOf(entry, capability)
    const places = described?.constraints.max_concurrency
    const full = places !== undefined && measured.inFlight >= places
    const probe = breaker.read(entry.agentId, capability).state === 'half-open'
    const affine = need.correlationId !== undefined && affinity.get(need.correlationId)?.agentId === entry.agentId
    const score = left ? Number.NaN : scoreOf({ load: entry.load, measured, reportedSuccess: entry.success, affine })
    return {
      inFlight: measured.inFlight,
      cost: described?.constraints.cost_level ?? MIDDLE_COST,
      full,
      probe,
      bound: affine && affinity.get(need.correlationId as string)?.plan === true,
      candidate: {
        agentId: entry.agentId,
        // Suspicion lowers preference only: nothing in flight is failed for it.
        score: entry.status === 'suspect' ? score * 0.5 : score,
        usable: left === undefined,
        // Put into words only when somebody reads them: this runs for every candidate of every call.
        get reasons() {
          return left
            ? [left]
            : [
                ...(probe ? ['breaker half-open: its next call is the probe'] : []),
                ...reasonsOf({
                  load: entry.load,
                  measured,
                  places: full ? places : undefined,
                  affine,
                  status: entry.status,
                }),
              ]
        },
        load: entry.load,
        p50Ms: measured.p50Ms,
        measured: measured.calls,
        success: measured.success,
        labels: described?.labels ?? {},
        status: entry.status,
      },
    }
  }

  const rank: Router['rank'] = async (need, options_) => {
    const entries = await directory.find(need, options_)
    const scored = entries.map((entry) => describe(entry, need))
    const usable = order(
      scored.filter(({ candidate }) => candidate.usable),
      { random, tunables },
    )
    const left = scored.map(({ candidate }) => candidate).filter(({ usable }) => !usable)
    return { candidates: [...usable, ...left] }
  }

  return {
    rank,
    async choose(need, options_) {
      let { candidates } = await rank(need, options_)
      const fits = ({ usable }: Candidate): boolean => usable
      // Those whose manifests are still on their way may be the ones that fit.
      if (!candidates.some(fits)) ({ candidates } = await rank(need, { ...options_, complete: true }))
      const usable = candidates.filter(fits)
      if (usable.length > 0) return usable.slice(0, tunables.candidatesKept)
      throw allFail(need, candidates, breaker) ?? nobody(need, candidates)
    },
    entry(other, capability) {
      const entry = directory.get(other)
      return entry && entryOf(entry, capability)
    },
    remember(correlationId, other, plan) {
      affinity.set(correlationId, { agentId: other, plan })
    },
  }
}

/** Why the breaker leaves an agent out, undefined when it does not. */
function keptAway(state: BreakerState): string | undefined {
  if (state.state === 'closed') return undefined
  if (state.state === 'open') {
    return `breaker open: ${state.because}; next probe in ${(state.probeInMs / 1000).toFixed(1)} s`
  }
  return state.probing ? `breaker half-open: ${state.because}; its one probe is under way` : undefined
}

/** Somebody offers it, but fails: that is another answer than that nobody does. */
function allFail(
  need: Need,
  candidates: readonly Candidate[],
  breaker: Pick<Breaker, 'read'>,
): HermesError | undefined {
  const failing = candidates.filter(({ reasons }) => reasons[0]?.startsWith('breaker '))
  if (failing.length === 0) return undefined
  const waits = failing.map(({ agentId }) => {
    const state = breaker.read(agentId, need.capability as string)
    return state.state === 'open' ? state.probeInMs : 0
  })
  return breakerError(
    need.capability as string,
    failing.map(({ agentId, reasons }) => `${agentId}: ${reasons[0]}`),
    Math.min(...waits),
    { candidates: candidates.map(({ agentId, reasons }) => ({ agent_id: agentId, reason: reasons.join('; ') })) },
  )
}

/** That whoever offers a capability is not asked now. */
export function breakerError(
  capability: string,
  why: readonly string[],
  retryAfterMs: number,
  details: Record<string, unknown> = {},
): HermesError {
  return new HermesError('BREAKER_OPEN', {
    message: `${capability} fails wherever it is offered: ${why.join('; ')}`,
    retryAfterMs,
    details,
  })
}

function nobody(need: Need, candidates: readonly Candidate[]): HermesError {
  const others = candidates.map(({ agentId, reasons }) => ({ agent_id: agentId, reason: reasons.join('; ') }))
  const cycles = others.filter(({ reason }) => reason.startsWith('would wait for itself'))
  if (cycles.length > 0 && (need.agent !== undefined || cycles.length === others.length)) {
    const cycle = [...need.path, `${cycles[0]?.agent_id}#${need.capability}`]
    return new HermesError('CALL_CYCLE', {
      message: `the call would wait for itself: ${cycle.join(' → ')}`,
      details: { path: cycle },
    })
  }
  const what = [need.capability && `capability ${need.capability}`, need.agent && `agent ${need.agent}`]
    .filter(Boolean)
    .join(' at ')
  return new HermesError('NO_CANDIDATE', {
    message:
      others.length === 0
        ? `nobody is known that offers ${what}`
        : `nobody can serve ${what}: ${others.map(({ agent_id, reason }) => `${agent_id}: ${reason}`).join('; ')}`,
    hint:
      others.length === 0
        ? 'Check that the other agent runs in the same network, that a bootstrap address leads to it, and that trust admits it.'
        : 'Each agent is listed with the reason why it was left out.',
    details: { candidates: others },
  })
}

/** Why a usable candidate ranks where it does. */
function reasonsOf(facts: {
  load: number
  measured: Measured
  /** Its places, when all of them are taken from here. */
  places: number | undefined
  affine: boolean
  status: Entry['status']
}): string[] {
  const { load, measured, places, affine, status } = facts
  return [
    `load ${load}`,
    measured.p50Ms === undefined ? 'not measured yet' : `p50 ${Math.round(measured.p50Ms)} ms`,
    measured.calls === 0
      ? 'no calls from here yet'
      : `${Math.round(measured.success * 1000) / 10} % of ${measured.calls} calls (measured here)`,
    ...(places === undefined ? [] : [`its ${places === 1 ? 'one place is' : `${places} places are`} taken from here`]),
    ...(measured.inFlight > 0 && places === undefined ? [`${measured.inFlight} in flight from here`] : []),
    ...(affine ? ['had the last call of this interaction'] : []),
    ...(status === 'suspect' ? ['silent for a while'] : []),
  ]
}
