import type { Manifest, PublicKey } from '@hermes-peer/protocol'

/** What is known of one agent. */
export interface Entry {
  readonly agentId: string
  readonly key: PublicKey
  readonly peerId: string
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

export function newEntry(agentId: string, key: PublicKey, peerId: string, now: number): Entry {
  return {
    agentId,
    key,
    peerId,
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

/** Names it offers, by manifest where that is known. */
export function offered(entry: Entry): readonly string[] {
  return entry.manifest ? entry.manifest.capabilities.map(({ name }) => name) : entry.capabilities
}
