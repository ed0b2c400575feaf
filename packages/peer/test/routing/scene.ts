import { isHermesError } from '@hermes-peer/protocol'
import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { DEFAULTS } from '../../src/defaults.ts'
import type { Directory, Entry } from '../../src/directory/directory.ts'
import { type CallGuard, NO_POLICY } from '../../src/policy/guard.ts'
import type { Endorsers } from '../../src/routing/endorsements.ts'
import type { EmbedFunction } from '../../src/routing/intent/embedder.ts'
import { createIntents } from '../../src/routing/intent/intents.ts'
import { createMeasurements } from '../../src/routing/measure.ts'
import { createRouter, type Need } from '../../src/routing/router.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { breaking } from './breaker-model.ts'
import { entry } from './support.ts'

export const signal = new AbortController().signal

/** A router over a directory that knows just these. */
export function routing(
  entries: readonly Entry[],
  seed: number | string = 1,
  embed?: EmbedFunction,
  endorsers: Endorsers = () => [],
  policy: CallGuard = NO_POLICY.call,
) {
  const asked: { fresh: boolean }[] = []
  const directory = {
    all: () => entries,
    get: (agentId: string) => entries.find((one) => one.agentId === agentId),
    find: async ({ agent }: Need, { fresh = false }: { fresh?: boolean }) => {
      asked.push({ fresh })
      return entries.filter((one) => agent === undefined || one.agentId === agent)
    },
    lookup: () => ({ unreachable: [], staleMs: undefined }),
  } as unknown as Directory
  const clock = manualClock()
  const measurements = createMeasurements({ tunables: DEFAULTS, clock })
  const { breaker } = breaking({}, clock)
  const telemetry = createTelemetry({ clock })
  const fallbacks: string[] = []
  telemetry.events.on('intent.fallback', ({ code }) => fallbacks.push(code))
  const intents = createIntents({ embed, clock, tunables: DEFAULTS, telemetry })
  const router = createRouter({
    intents,
    endorsers,
    agentId: 'me',
    directory,
    measurements,
    breaker,
    policy,
    clock,
    random: seededRandom(seed),
    tunables: DEFAULTS,
  })
  const need = (more: Partial<Need> = {}): Need => ({ capability: 'work', path: [], ...more })
  const rank = async (more: Partial<Need> = {}) => (await router.rank(need(more), { signal })).candidates
  const choose = (more: Partial<Need> = {}) => router.choose(need(more), { signal })
  const refusal = async (more: Partial<Need> = {}) => {
    try {
      await choose(more)
    } catch (error) {
      if (isHermesError(error)) return error
      throw error
    }
    throw new Error('somebody was chosen')
  }
  return { router, measurements, breaker, clock, rank, choose, refusal, asked, fallbacks }
}

export const provider = (agentId: string, more: Parameters<typeof entry>[1] = {}) =>
  entry(agentId, { offers: [{ name: 'work' }], ...more })
export const named = (list: readonly { agentId: string }[]) => list.map(({ agentId }) => agentId)
