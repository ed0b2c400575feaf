import { type Manifest, type PublicKey, peerIdOf } from '@hermes-peer/protocol'
import type { Identity } from '../identity/identities.ts'

/** What is known of one agent. */
export interface Entry {
  readonly agentId: string
  /** Of the newest of its instances that is known; its key signs, and is its transport identity. */
  identity: Identity
  key: PublicKey
  peerId: string
  /** The instance before that one: it may still speak for a while. */
  older: Identity | undefined
  addresses: readonly string[]
  /** As last reported; the manifest, where it is known, is what counts. */
  capabilities: readonly string[]
  manifest: Manifest | undefined
  manifestDigest: string | undefined
  /** What its last manifest said, whoever signed it anew since; undefined before the first. */
  said: string | undefined
  status: 'online' | 'suspect' | 'offline' | 'draining' | 'unknown'
  load: number
  queueDepth: number
  /** Success rate that it reports of itself, 0..1. */
  success: number
  /** Orders its presence reports. */
  epoch: number
  counter: number
  /** Highest serial it has spoken of. */
  manifestSerial: number
  /** Serial of the last manifest taken: an older one never comes back. */
  lowestSerial: number
  /** Last sign of life, monotonic ms. */
  heardAt: number
  /** Presence reports in the running window, and those of them that told of a new state. */
  reports: { since: number; count: number; changes: number }
}

export function newEntry(identity: Identity, now: number): Entry {
  return {
    agentId: identity.agentId,
    identity,
    key: identity.signer,
    peerId: peerIdOf(identity.signer.raw),
    older: undefined,
    addresses: [],
    capabilities: [],
    manifest: undefined,
    manifestDigest: undefined,
    said: undefined,
    status: 'unknown',
    load: 0,
    queueDepth: 0,
    success: 1,
    epoch: 0,
    counter: -1,
    manifestSerial: 0,
    lowestSerial: 0,
    heardAt: now,
    reports: { since: now, count: 0, changes: 0 },
  }
}

/** Whether the agent key is the one on record; with another one it is another agent. */
export function isSameAgent(entry: Entry, { agentKey }: Identity): boolean {
  return entry.identity.agentKey.fingerprint === agentKey.fingerprint
}

/** Takes note of an instance of the agent: `current`, `newer` than the one known so far, or `older`, which changes nothing. */
export function adopt(entry: Entry, identity: Identity): 'current' | 'newer' | 'older' {
  if (identity.signer.fingerprint === entry.key.fingerprint) {
    entry.identity = identity
    return 'current'
  }
  if ((identity.instance?.serial ?? 0) <= (entry.identity.instance?.serial ?? 0)) {
    entry.older ??= identity
    return 'older'
  }
  entry.older = entry.identity
  entry.identity = identity
  entry.key = identity.signer
  entry.peerId = peerIdOf(identity.signer.raw)
  // Those of the former instance are bound to its key.
  entry.addresses = []
  return 'newer'
}

/** Names it offers, by manifest where that is known. */
export function offered(entry: Entry): readonly string[] {
  return entry.manifest ? entry.manifest.capabilities.map(({ name }) => name) : entry.capabilities
}
