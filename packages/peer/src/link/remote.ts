import type { ContentType, LinkLimits, PublicKey } from '@hermes-peer/protocol'
import type { Identity, Meeting } from '../identity/identities.ts'

/** What the handshake proved and told of the other side. */
export interface Remote {
  readonly agentId: string
  /** Who stands behind its key, and how it was met when that was judged. */
  readonly identity: Identity
  readonly meeting: Meeting
  /** Signs what comes over this link: that of the instance. */
  readonly key: PublicKey
  readonly peerId: string
  readonly address: string
  readonly epoch: number
  /** First sequence it will send over this link. */
  readonly nextSequence: number
  readonly manifestDigest: string
  /** Names the revocations that it keeps; undefined: none. */
  readonly revocations: string | undefined
  readonly contentTypes: readonly ContentType[]
  readonly features: readonly string[]
  readonly limits: LinkLimits
  /** Its wall clock minus ours, ms. */
  readonly offsetMs: number
}

/** What a peer says of itself in every handshake; read anew each time. */
export interface LinkSelf {
  readonly agentId: string
  /** The agent key. */
  readonly key: PublicKey
  readonly network: string
  readonly epoch: number
  readonly limits: LinkLimits
  manifestDigest(): string
  /** Names the revocations that are kept here; undefined: none. */
  revocations?(): string | undefined
  nextSequence(agentId: string): number
  /** Highest epoch known of an agent, 0 if none. */
  seenEpoch(agentId: string): number
}
