import {
  fromBase64url,
  HermesError,
  isJsonObject,
  LIMITS,
  openDocument,
  openManifest,
  type PublicKey,
} from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Trust } from '../identity/trust.ts'
import type { Link } from '../link/link.ts'

/** Asks what every peer offers, over a given link. */
export type Ask = (link: Link, capability: string, input: unknown, options: { timeoutMs: number }) => Promise<unknown>

export interface KeysOptions {
  readonly agentId: string
  readonly ownKey: PublicKey
  readonly networkName: string
  readonly trust: Trust
  readonly clock: Clock
  readonly tunables: Tunables
  readonly keys: (raw: Uint8Array) => PublicKey
  /** The key of an agent that is linked, or was heard of by presence. */
  readonly keyOf: (agentId: string) => PublicKey | undefined
  readonly ask: Ask
}

/** Keys of agents without a link, and the signed manifests that prove them to others. */
export interface Keys {
  /** The admitted key of an agent, this one included. */
  find(agentId: string): PublicKey | undefined
  /** Asks the neighbour for the manifest of an agent, unless it is at hand; resolves in any case. */
  learn(link: Link, agentId: string): Promise<void>
  /** Has been asked over this link in vain a short time ago. */
  vain(link: Link, agentId: string): boolean
  /** The key that a kept manifest names, admitted here or not: it tells a forgery from what others may admit. */
  named(agentId: string): PublicKey | undefined
  /** Keeps the manifest that an agent gave of itself. */
  keep(agentId: string, document: Uint8Array): void
  /** The signed manifest of an agent, if it is kept. */
  document(agentId: string): Uint8Array | undefined
}

interface Kept {
  readonly document: Uint8Array
  readonly key: PublicKey
  /** Wall clock, ms. */
  readonly expiresAt: number
}

export function createKeys(options: KeysOptions): Keys {
  const { agentId: self, ownKey, networkName, trust, clock, tunables, keyOf, ask } = options
  const kept = new LRUCache<string, Kept>({ maxSize: tunables.manifestsKept, sizeCalculation: () => 1 })
  const asking = new Map<string, Promise<void>>()
  /** Until when it is of no use to ask again, monotonic ms. */
  const refused = new LRUCache<string, number>({ maxSize: tunables.manifestsKept, sizeCalculation: () => 1 })
  const nameOf = (link: Link, agentId: string) => `${link.id} ${agentId}`

  const open = (agentId: string, document: Uint8Array): Kept => {
    const { value } = openDocument(document, LIMITS.manifest, 'manifest')
    const text = isJsonObject(value as never) ? (value as { key?: unknown }).key : undefined
    const raw = typeof text === 'string' ? fromBase64url(text) : undefined
    if (!raw) throw new HermesError('MALFORMED', { message: 'manifest: key is not a key' })
    const key = options.keys(raw)
    const manifest = openManifest(document, key)
    if (manifest.agent_id !== agentId || manifest.network !== networkName || manifest.expires_at < clock.now()) {
      throw new HermesError('IDENTITY_MISMATCH', { message: `that is not the manifest of ${agentId}` })
    }
    return { document, key, expiresAt: manifest.expires_at }
  }

  const fetch = async (link: Link, agentId: string): Promise<void> => {
    try {
      // The neighbour itself is asked without a name, as everyone is.
      const input = agentId === link.remote.agentId ? {} : { agent_id: agentId }
      const output = await ask(link, 'hermes.manifest', input, { timeoutMs: tunables.manifestTimeoutMs })
      const text = isJsonObject(output as never) ? (output as { manifest?: unknown }).manifest : undefined
      const document = typeof text === 'string' ? fromBase64url(text) : undefined
      if (!document) throw new HermesError('MALFORMED', { message: `no manifest of ${agentId} was given` })
      kept.set(agentId, open(agentId, document))
      // It is of use only where it proves a key that is admitted; else the next message must not ask again at once.
      if (keys.find(agentId)) return
    } catch {
      // Whoever needs the key finds that there is none, and says so.
    }
    refused.set(nameOf(link, agentId), clock.monotonic() + tunables.lookupFreshMs)
  }

  /** What has expired proves nothing any more. */
  const held = (agentId: string): Kept | undefined => {
    const one = kept.get(agentId)
    return one && one.expiresAt >= clock.now() ? one : undefined
  }

  const keys: Keys = {
    find(agentId) {
      if (agentId === self) return ownKey
      const known = keyOf(agentId)
      if (known) return known
      const named = held(agentId)?.key
      if (!named) return undefined
      const { raw, fingerprint } = named
      // Judged each time: trust may have changed since.
      const { admitted } = trust.judge({ agentId, key: raw, fingerprint, met: 'gossip', chosen: false })
      return admitted ? named : undefined
    },
    learn(link, agentId) {
      if (agentId === self || (held(agentId) && keys.find(agentId)) || keys.vain(link, agentId)) {
        return Promise.resolve()
      }
      const name = nameOf(link, agentId)
      const running = asking.get(name)
      if (running !== undefined) return running
      if (asking.size >= tunables.manifestsAsked) return Promise.resolve()
      const started = fetch(link, agentId).finally(() => asking.delete(name))
      asking.set(name, started)
      return started
    },
    vain: (link, agentId) => (refused.get(nameOf(link, agentId)) ?? 0) > clock.monotonic(),
    named: (agentId) => held(agentId)?.key,
    keep(agentId, document) {
      try {
        kept.set(agentId, open(agentId, document))
      } catch {
        // The directory judges it too, and tells.
      }
    },
    document: (agentId) => held(agentId)?.document,
  }
  return keys
}
