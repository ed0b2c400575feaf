import type { CapabilityEntry } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Directory, FindOptions } from '../directory/directory.ts'
import type { CallGuard } from '../policy/guard.ts'
import type { Random } from '../random.ts'
import type { Breaker } from './breaker.ts'
import { type Decision, decide } from './decision.ts'
import type { Endorsers } from './endorsements.ts'
import type { Ask } from './facts.ts'
import { allFail, nobody } from './failures.ts'
import { gather } from './gather.ts'
import type { IntentMatcher } from './intent/matcher.ts'
import type { Measurements } from './measure.ts'
import type { Candidate, Query } from './query.ts'
import type { DecisionRecord } from './record.ts'
import { createSchemaFilter, type GivenInput } from './schema-filter.ts'

/** What one call asks of routing, beside the query. */
export interface Need extends Query {
  /** The input as it is sent; left out when nothing is sent yet. */
  readonly input?: GivenInput
  /** The input of work that is handed on, for policy alone. */
  readonly handedOn?: { readonly value: unknown }
  /** `agent_id#capability` of the calls that wait for this one. */
  readonly path: readonly string[]
  /** The interaction, for affinity. */
  readonly correlationId?: string
}

export interface Ranking {
  /** Usable ones first, best first; then those left out. */
  readonly candidates: readonly Candidate[]
}

export interface ChooseOptions extends FindOptions {
  /** Told how it was chosen, whoever was. */
  decided?: ((record: DecisionRecord) => void) | undefined
}

/** Finds who could serve a call, filters, ranks and explains. */
export interface Router {
  /**
   * Rejects with `NO_CANDIDATE`, `BREAKER_OPEN` or `CALL_CYCLE` that carry the whole explanation in `details.candidates`, or with
   * `DIRECTORY_UNREACHABLE`.
   */
  choose(need: Need, options: ChooseOptions): Promise<readonly Candidate[]>
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
  readonly intents: IntentMatcher
  readonly endorsers: Endorsers
  readonly policy: CallGuard
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
}

/** Interactions remembered for affinity. */
const MOST_INTERACTIONS = 1000

export function createRouter(options: RouterOptions): Router {
  const { directory, breaker, clock, random, tunables } = options
  const affinity = new LRUCache<string, { agentId: string; plan: boolean }>({
    maxSize: MOST_INTERACTIONS,
    sizeCalculation: () => 1,
  })
  const gathering = {
    ...options,
    acceptsInput: createSchemaFilter(),
    affinity: (correlationId: string) => affinity.get(correlationId),
  }

  const rank = async (need: Need, how: FindOptions): Promise<Decision> =>
    decide(askOf(need), await gather(need, how, gathering), { random, tunables })

  return {
    rank,
    // `how.signal` may be made when it is asked for: most choices never do.
    async choose(need, how) {
      const fits = ({ usable }: Candidate): boolean => usable
      let decision = await rank(need, how)
      // Those whose manifests are still on their way may be the ones that fit.
      if (!decision.candidates.some(fits)) decision = await rank(need, { ...how, complete: true })
      how.decided?.(decision.record(clock.now()))
      const { candidates } = decision
      const usable = candidates.filter(fits)
      if (usable.length > 0) return usable.slice(0, tunables.candidatesKept)
      throw allFail(need, candidates, breaker) ?? nobody(need, candidates)
    },
    entry(other, capability) {
      return directory.get(other)?.manifest?.capabilities.find(({ name }) => name === capability)
    },
    remember(correlationId, other, plan) {
      affinity.set(correlationId, { agentId: other, plan })
    },
  }
}

function askOf({ capability, agent, where, intent, sla, path }: Need): Ask {
  return {
    ...(capability === undefined ? {} : { capability }),
    ...(agent === undefined ? {} : { agent }),
    ...(where === undefined ? {} : { where }),
    ...(intent === undefined ? {} : { intent }),
    ...(sla === undefined ? {} : { sla }),
    path,
  }
}
