import type { CapabilityEntry } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Directory, Entry, FindOptions } from '../directory/directory.ts'
import type { CallGuard } from '../policy/guard.ts'
import type { Breaker } from './breaker.ts'
import type { Endorsers } from './endorsements.ts'
import { type Facts, misfit } from './facts.ts'
import type { IntentMatcher } from './intent/matcher.ts'
import type { Measurements } from './measure.ts'
import type { Need } from './router.ts'
import type { SchemaFilter } from './schema-filter.ts'

export interface GatherOptions {
  readonly agentId: string
  readonly directory: Directory
  readonly measurements: Measurements
  readonly breaker: Pick<Breaker, 'read'>
  readonly clock: Clock
  readonly intents: IntentMatcher
  readonly acceptsInput: SchemaFilter
  readonly endorsers: Endorsers
  readonly policy: CallGuard
  /** Whom the interaction's last call went to. */
  affinity(correlationId: string): { readonly agentId: string; readonly plan: boolean } | undefined
}

/** An agent beside one capability that is asked about. */
interface Pair {
  readonly entry: Entry
  readonly capability: string | undefined
  readonly described: CapabilityEntry | undefined
}

/** Agents that an explanation names although they are far from what is wished for. */
const MOST_FAR = 20

/** Finds who comes into question, and collects what the choice has to know of each. */
export async function gather(need: Need, how: FindOptions, options: GatherOptions): Promise<readonly Facts[]> {
  const entries = await options.directory.find(need, how)
  const pairs = entries.flatMap((entry) => pairsOf(entry, need))
  const about = { ...options, stale: staleness(need, options.directory) }
  if (need.intent === undefined) return pairs.map((pair) => factsOf(pair, need, undefined, about))
  const meant = await meaningsOf(pairs, need.intent, need, how.signal, options)
  const facts = pairs.map((pair, index) => factsOf(pair, need, meant[index], about))
  if (need.capability !== undefined) return facts
  // Everything that everybody offers was asked about: what has nothing to do with the wish is no news.
  const near = facts.filter(({ meaning }) => meaning && meaning.near > 0)
  const nearest = near.toSorted((a, b) => (b.meaning?.near ?? 0) - (a.meaning?.near ?? 0))
  const far = nearest.filter((one) => misfit(one, need) !== undefined).slice(0, MOST_FAR)
  return nearest.filter((one) => far.includes(one) || misfit(one, need) === undefined)
}

/** Which directories could not be asked lately, so that others may offer it too, or these not any more. */
function staleness({ capability }: Need, directory: Directory): Facts['stale'] {
  if (capability === undefined) return undefined
  const { unreachable, staleMs } = directory.lookup(capability)
  if (unreachable.length === 0) return undefined
  return {
    sources: unreachable.map(({ source }) => source),
    ...(staleMs === undefined ? {} : { ageMs: Math.round(staleMs) }),
  }
}

function pairsOf(entry: Entry, { capability, intent }: Need): Pair[] {
  const described = (name: string) => entry.manifest?.capabilities.find((one) => one.name === name)
  if (capability !== undefined) return [{ entry, capability, described: described(capability) }]
  if (intent === undefined) return [{ entry, capability: undefined, described: undefined }]
  if (entry.manifest) return entry.manifest.capabilities.map((one) => ({ entry, capability: one.name, described: one }))
  return entry.capabilities.map((name) => ({ entry, capability: name, described: undefined }))
}

/** What is known of a capability of which no manifest tells more. */
const nameOnly = (name: string): CapabilityEntry => ({
  name,
  description: '',
  call_type: 'request',
  effects: 'once',
  input_schema: {},
  output_schema: {},
  errors: {},
  labels: {},
  constraints: {},
  negative_capabilities: [],
})

async function meaningsOf(
  pairs: readonly Pair[],
  wish: string,
  { capability }: Need,
  signal: AbortSignal,
  { intents, directory }: GatherOptions,
) {
  const asked = pairs.map(({ described, capability: name }) => described ?? nameOnly(name ?? ''))
  const all: CapabilityEntry[] = []
  for (const { manifest } of directory.all()) if (manifest) all.push(...manifest.capabilities)
  return intents.match({ wish, asked, all: all.length > 0 ? all : asked, name: capability }, signal)
}

function factsOf(
  { entry, capability, described }: Pair,
  need: Need,
  meaning: Facts['meaning'],
  {
    agentId,
    measurements,
    breaker,
    clock,
    acceptsInput,
    affinity,
    endorsers,
    policy,
    stale,
  }: GatherOptions & { readonly stale: Facts['stale'] | undefined },
): Facts {
  const name = capability ?? ''
  const last = need.correlationId === undefined ? undefined : affinity(need.correlationId)
  const affine = last?.agentId === entry.agentId
  const endorsedBy = described && entry.manifest ? endorsers(entry.manifest, name) : []
  const { max_concurrency: places, cost_level: cost, p99_ms: promisedP99Ms } = described?.constraints ?? {}
  const facts: Facts = {
    agentId: entry.agentId,
    capability,
    self: entry.agentId === agentId,
    status: entry.status,
    heardAt: clock.now() - Math.round(clock.monotonic() - entry.heardAt),
    offers: offersOf(entry, name, described),
    described: described !== undefined,
    labels: described?.labels ?? {},
    breaker: breaker.read(entry.agentId, name),
    load: entry.load,
    reportedSuccess: entry.success,
    measured: measurements.read(entry.agentId, name),
    ...(need.sla === undefined ? {} : { recent: measurements.recent(entry.agentId, name) }),
    ...(places === undefined ? {} : { places }),
    ...(cost === undefined ? {} : { cost }),
    ...(promisedP99Ms === undefined ? {} : { promisedP99Ms }),
    ...(endorsedBy.length === 0 ? {} : { endorsedBy }),
    affine,
    bound: affine && last.plan,
    ...(meaning === undefined ? {} : { meaning }),
    ...(stale === undefined ? {} : { stale }),
  }
  if (capability === undefined || facts.self || misfit(facts, need) !== undefined) return facts
  const { input } = need
  const denied = policy.denies(entry.agentId, capability, input ?? need.handedOn)
  if (denied !== undefined) return { ...facts, denied }
  // The dearest look comes last, and only at who passes all others that tell whether it is the right one.
  if (!input || !described) return facts
  const refusesInput = acceptsInput(described, input)
  return refusesInput === undefined ? facts : { ...facts, refusesInput }
}

function offersOf(entry: Entry, name: string, described: CapabilityEntry | undefined): Facts['offers'] {
  if (described) return 'manifest'
  return !entry.manifest && entry.capabilities.includes(name) ? 'presence' : 'nothing'
}
