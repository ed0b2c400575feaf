import { fromBase64url, HermesError, type SignedDocument, toBase64url } from '@hermes-peer/protocol'
import { outcomeBuiltIn } from './calls/outcome.ts'
import type { ContextRuntime } from './calls/pull.ts'
import type { SessionRuntime } from './calls/session.ts'
import type { AskRuntime } from './calls/system.ts'
import type { TaskProvider } from './calls/tasks/provider.ts'
import type { BuiltIn } from './calls/unqueued.ts'
import type { Clock } from './clock.ts'
import type { Tunables } from './defaults.ts'
import type { Dedup } from './delivery/dedup.ts'
import type { Forwarding } from './forwarding/forwarding.ts'
import { manifestFor } from './forwarding/manifest.ts'
import type { Links } from './link/links.ts'

export interface BuiltInsOptions {
  readonly agentId: string
  readonly epoch: number
  readonly clock: Clock
  readonly tunables: Tunables
  readonly dedup: Dedup
  readonly tasks: TaskProvider
  readonly sessions: SessionRuntime
  readonly contexts: ContextRuntime
  readonly revocations: BuiltIn
  own(): { readonly document: SignedDocument }
  /** Manifests of others that are kept. */
  keys(): Forwarding['keys']
}

/** What every peer offers, under `hermes.`. */
export function createBuiltIns(options: BuiltInsOptions): ReadonlyMap<string, BuiltIn> {
  const { agentId, epoch, clock, tunables, dedup, tasks, sessions, contexts, revocations, own, keys } = options
  return new Map<string, BuiltIn>([
    ...tasks.builtIns,
    ['hermes.manifest', (input) => ({ manifest: toBase64url(manifestFor(input, agentId, own(), keys())) })],
    ['hermes.session', sessions.builtIn],
    ['hermes.context', contexts.builtIn],
    ['hermes.revocations', revocations],
    [
      'hermes.outcome',
      outcomeBuiltIn({
        dedup,
        epoch,
        now: () => clock.now(),
        mostAheadMs: 10 * tunables.callTimeoutMs + tunables.clockToleranceMs,
      }),
    ],
  ])
}

/** Asks an agent that is linked for its signed manifest, and keeps it. Rejects with `PEER_UNREACHABLE`, `MALFORMED`. */
export function createAskManifest(options: {
  readonly ask: AskRuntime
  readonly links: Links
  readonly tunables: Tunables
  keys(): Forwarding['keys']
}): (agentId: string, signal: AbortSignal | undefined) => Promise<SignedDocument> {
  const { ask, links, tunables, keys } = options
  return async (agentId, signal) => {
    const link = links.get(agentId)
    if (!link) throw new HermesError('PEER_UNREACHABLE', { message: `no link to ${agentId}` })
    const answer = await ask(link, 'hermes.manifest', {}, { timeoutMs: tunables.manifestTimeoutMs, signal })
    const text = (answer as { manifest?: unknown } | null)?.manifest
    const document = typeof text === 'string' ? fromBase64url(text) : undefined
    if (!document) throw new HermesError('MALFORMED', { message: `${agentId} gave no manifest` })
    keys().keep(agentId, document)
    return document
  }
}
