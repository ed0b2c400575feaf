import {
  type Capability,
  describeCapability,
  manifestDigest,
  type PublicKey,
  type SignedDocument,
  signManifest,
} from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { OwnInstance } from '../identity/own-instance.ts'

/** This peer's own signed manifest: made anew, with a higher serial, whenever what it provides has changed, and long before it expires. */
export interface OwnManifest {
  readonly document: SignedDocument
  readonly digest: string
  readonly serial: number
  renew(): void
  stop(): void
}

export function createOwnManifest(options: {
  readonly agentId: string
  readonly network: string
  readonly description: string
  /** The agent key, and what signs for it. */
  readonly key: PublicKey
  readonly own: () => OwnInstance
  readonly clock: Clock
  readonly tunables: Tunables
  readonly epoch: number
  contracts(): readonly Capability[]
  /** What others have signed about this agent, base64url. */
  readonly endorsements?: readonly string[]
}): OwnManifest {
  const { agentId, network, description, key, own, clock, tunables, epoch, contracts, endorsements = [] } = options
  // Begins at the epoch, which is higher than in any life before.
  let serial = epoch
  let document: SignedDocument
  let digest: string
  const make = (): void => {
    const now = clock.now()
    document = signManifest(
      {
        agent_id: agentId,
        key: key.raw,
        certificates: own().certificates,
        network,
        serial,
        issued_at: now,
        expires_at: now + tunables.manifestLifeMs,
        description,
        capabilities: contracts().map(describeCapability),
        ...(endorsements.length === 0 ? {} : { endorsements }),
      },
      own().key,
    )
    digest = manifestDigest(document)
  }
  const renew = (): void => {
    serial++
    make()
  }
  let timer: Timer | undefined
  const schedule = (): void => {
    timer = clock.after(tunables.manifestRenewMs, () => {
      renew()
      schedule()
    })
  }
  make()
  schedule()
  return {
    get document() {
      return document
    },
    get digest() {
      return digest
    },
    get serial() {
      return serial
    },
    renew,
    stop: () => clock.clear(timer),
  }
}
