import type { ContentType, LinkLimits, PublicKey } from '@hermes-peer/protocol'

/** What the handshake proved and told of the other side. */
export interface Remote {
  readonly agentId: string
  readonly key: PublicKey
  readonly peerId: string
  readonly address: string
  readonly epoch: number
  /** First sequence it will send over this link. */
  readonly nextSequence: number
  readonly manifestDigest: string
  readonly contentTypes: readonly ContentType[]
  readonly features: readonly string[]
  readonly limits: LinkLimits
  /** Its wall clock minus ours, ms. */
  readonly offsetMs: number
}

/** What a peer says of itself in every handshake; read anew each time. */
export interface LinkSelf {
  readonly agentId: string
  readonly network: string
  readonly epoch: number
  readonly limits: LinkLimits
  manifestDigest(): string
  nextSequence(agentId: string): number
  /** Highest epoch known of an agent, 0 if none. */
  seenEpoch(agentId: string): number
}
