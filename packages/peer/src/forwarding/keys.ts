import { fromBase64url, HermesError, isJsonObject, openManifest, type PublicKey } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Identities, Identity, Meeting } from '../identity/identities.ts'
import type { Link } from '../link/link.ts'

/** Asks what every peer offers, over a given link. */
export type Ask = (link: Link, capability: string, input: unknown, options: { timeoutMs: number }) => Promise<unknown>

export interface KeysOptions {
  readonly agentId: string
  /** Those that this agent signs with, the newest first. */
  readonly ownKeys: () => readonly PublicKey[]
  readonly networkName: string
  readonly identities: Identities
  readonly clock: Clock
  readonly tunables: Tunables
  /** The keys of an agent that is linked, or was heard of by presence, the newest first. */
  readonly keysOf: (agentId: string) => readonly PublicKey[]
  readonly ask: Ask
}

/** Keys of agents without a link, and the signed manifests that prove them to others. */
export interface Keys {
  /** An admitted key of an agent, this one included: the newest, or the one of that fingerprint. */
  find(agentId: string, fingerprint?: string): PublicKey | undefined
  /** All of them as one: what one of them has signed verifies. */
  verifier(agentId: string): Pick<PublicKey, 'verify'> | undefined
  /** Asks the neighbour for the manifest of an agent, unless its key (the one of that fingerprint) is at hand; resolves in any case. */
  learn(link: Link, agentId: string, fingerprint?: string): Promise<void>
  /** Has been asked over this link in vain a short time ago. */
  vain(link: Link, agentId: string): boolean
  /** The key that a kept manifest names, admitted here or not: it tells a forgery from what others may admit. */
  named(agentId: string): PublicKey | undefined
  /** Keeps the manifest that an agent gave of itself. */
  keep(agentId: string, document: Uint8Array): void
  /** The signed manifest of an agent, if it is kept (and proves the key of that fingerprint). */
  document(agentId: string, fingerprint?: string): Uint8Array | undefined
}

const IN_GOSSIP: Meeting = { met: 'gossip', chosen: false }

interface Kept {
  readonly document: Uint8Array
  readonly identity: Identity
  /** Wall clock, ms. */
  readonly expiresAt: number
}

export function createKeys(options: KeysOptions): Keys {
  const { agentId: self, ownKeys, networkName, identities, clock, tunables, keysOf, ask } = options
  const kept = new LRUCache<string, Kept>({ maxSize: tunables.manifestsKept, sizeCalculation: () => 1 })
  const asking = new Map<string, Promise<void>>()
  /** Until when it is of no use to ask again, monotonic ms. */
  const refused = new LRUCache<string, number>({ maxSize: tunables.manifestsKept, sizeCalculation: () => 1 })
  const nameOf = (link: Link, agentId: string) => `${link.id} ${agentId}`

  const open = (agentId: string, document: Uint8Array): Kept => {
    let identity: Identity | undefined
    const manifest = openManifest(document, (shown) => {
      identity = identities.read(shown)
      return identity.signer
    })
    if (manifest.agent_id !== agentId || manifest.network !== networkName || manifest.expires_at < clock.now()) {
      throw new HermesError('IDENTITY_MISMATCH', { message: `that is not the manifest of ${agentId}` })
    }
    return { document, identity: identity as unknown as Identity, expiresAt: manifest.expires_at }
  }

  const fetch = async (link: Link, agentId: string, fingerprint: string | undefined): Promise<void> => {
    try {
      // The neighbour itself is asked without a name, as everyone is.
      const input = agentId === link.remote.agentId ? {} : { agent_id: agentId }
      const output = await ask(link, 'hermes.manifest', input, { timeoutMs: tunables.manifestTimeoutMs })
      const text = isJsonObject(output as never) ? (output as { manifest?: unknown }).manifest : undefined
      const document = typeof text === 'string' ? fromBase64url(text) : undefined
      if (!document) throw new HermesError('MALFORMED', { message: `no manifest of ${agentId} was given` })
      kept.set(agentId, open(agentId, document))
      // It is of use only where it proves a key that is admitted; else the next message must not ask again at once.
      if (keys.find(agentId, fingerprint)) return
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

  /** The key of a kept manifest, where it is admitted. Judged each time: trust may have changed since. */
  const keptKey = (agentId: string): readonly PublicKey[] => {
    const identity = held(agentId)?.identity
    if (!identity || !identities.judge(identity, IN_GOSSIP).admitted) return []
    try {
      // From here on it is on record, with its team and roles.
      identities.proven(identity, IN_GOSSIP)
    } catch {
      return []
    }
    return [identity.signer]
  }

  const matching = (found: readonly PublicKey[], fingerprint: string | undefined): PublicKey | undefined =>
    fingerprint === undefined ? found[0] : found.find((key) => key.fingerprint === fingerprint)

  const keys: Keys = {
    find(agentId, fingerprint) {
      const direct = agentId === self ? ownKeys() : keysOf(agentId)
      return matching(direct, fingerprint) ?? (agentId === self ? undefined : matching(keptKey(agentId), fingerprint))
    },
    verifier(agentId) {
      const all = agentId === self ? ownKeys() : [...keysOf(agentId), ...keptKey(agentId)]
      if (all.length < 2) return all[0]
      return { verify: (message, signature) => all.some((key) => key.verify(message, signature)) }
    },
    learn(link, agentId, fingerprint) {
      if (agentId === self || (held(agentId) && keys.find(agentId, fingerprint)) || keys.vain(link, agentId)) {
        return Promise.resolve()
      }
      const name = nameOf(link, agentId)
      const running = asking.get(name)
      if (running !== undefined) return running
      if (asking.size >= tunables.manifestsAsked) return Promise.resolve()
      const started = fetch(link, agentId, fingerprint).finally(() => asking.delete(name))
      asking.set(name, started)
      return started
    },
    vain: (link, agentId) => (refused.get(nameOf(link, agentId)) ?? 0) > clock.monotonic(),
    named: (agentId) => held(agentId)?.identity.signer,
    keep(agentId, document) {
      try {
        kept.set(agentId, open(agentId, document))
      } catch {
        // The directory judges it too, and tells.
      }
    },
    document(agentId, fingerprint) {
      const one = held(agentId)
      return fingerprint === undefined || one?.identity.signer.fingerprint === fingerprint ? one?.document : undefined
    },
  }
  return keys
}
