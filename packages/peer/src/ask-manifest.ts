import { fromBase64url, HermesError } from '@hermes-peer/protocol'
import type { AskRuntime } from './calls/system.ts'
import type { Tunables } from './defaults.ts'
import type { Links } from './link/links.ts'

export interface AskManifestOptions {
  readonly links: Links
  readonly ask: AskRuntime
  readonly tunables: Tunables
  /** Keeps what an agent gave of itself, to be shown to others. */
  keep(agentId: string, document: Uint8Array): void
}

/** Asks an agent for its own manifest over its link. Rejects with `PEER_UNREACHABLE` without one, and `MALFORMED`. */
export function createAskManifest({ links, ask, tunables, keep }: AskManifestOptions) {
  return async (other: string, signal: AbortSignal | undefined): Promise<Uint8Array> => {
    const link = links.get(other)
    if (!link) throw new HermesError('PEER_UNREACHABLE', { message: `no link to ${other}` })
    const output = await ask(link, 'hermes.manifest', {}, { timeoutMs: tunables.manifestTimeoutMs, signal })
    const { manifest } = (output ?? {}) as { manifest?: unknown }
    const document = typeof manifest === 'string' ? fromBase64url(manifest) : undefined
    if (!document) throw new HermesError('MALFORMED', { message: `${other} gave no manifest` })
    keep(other, document)
    return document
  }
}
