import {
  type InstanceCertificate,
  kindsOf,
  type PublicKey,
  peerIdOf,
  readCertificate,
  type SignedDocument,
  type SigningKey,
} from '@hermes-peer/protocol'

/** One key under which this agent runs: it signs, and is the transport identity of one network node. */
export interface OwnInstance {
  readonly key: SigningKey
  readonly peerId: string
  /** Of its certificate; 0: it is the agent key itself. */
  readonly serial: number
  /** What is shown with it: certificates of the organisation, then that of the instance. */
  readonly certificates: readonly SignedDocument[]
  /** Wall clock, ms: when its certificate runs out; undefined without one. */
  readonly notAfter: number | undefined
}

/** Reads its serial and its end out of the certificates. Throws as `readCertificate` does. */
export function ownInstance(
  key: SigningKey,
  agentKey: PublicKey,
  certificates: readonly SignedDocument[],
): OwnInstance {
  const at = kindsOf(certificates).indexOf('instance')
  const certificate =
    at < 0 ? undefined : (readCertificate(certificates[at] as SignedDocument, agentKey) as InstanceCertificate)
  return {
    key,
    peerId: peerIdOf(key.publicKey.raw),
    serial: certificate?.serial ?? 0,
    certificates,
    notAfter: certificate?.not_after,
  }
}
