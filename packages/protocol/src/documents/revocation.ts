import { toBase64url } from '../bytes/parts.ts'
import { FINGERPRINT, type PublicKey, publicKey, type SigningKey } from '../crypto/keys.ts'
import { LIMITS } from '../limits.ts'
import { readCertificates, writtenCertificates } from './chain.ts'
import { Fields } from './fields.ts'
import { openDocument, type SignedDocument, signDocument, verifyDocument } from './signed.ts'

/** A key that must not speak for an agent any more, from now on and for ever. */
export interface Revocation {
  readonly network: string
  /** Whose key it was; for the key of a team, the prefix of its certificate. */
  readonly agent_id: string
  /** Fingerprint of the agent key, of an instance key, or of a team key. */
  readonly key: string
  /** Rises with every revocation for that agent. */
  readonly serial: number
  readonly reason: string
  /** Raw key that signed it: the agent key, or that of the organisation. */
  readonly signer: Uint8Array
  /** Of the organisation for the agent key that signed it: for those who have not met that agent. */
  readonly certificates?: readonly Uint8Array[]
}

export function signRevocation(revocation: Omit<Revocation, 'signer'>, key: SigningKey): SignedDocument {
  const { certificates, ...fields } = revocation
  return signDocument(
    'revocation',
    { ...fields, signer: toBase64url(key.publicKey.raw), ...writtenCertificates(certificates) },
    key,
  )
}

/**
 * Reads a revocation and checks that the key named in it signed it; whether that key may revoke is for trust to say. `admit`
 * admits that raw key. Throws `BAD_KEY`, `BAD_SIGNATURE`, `MALFORMED` that names the field, `LIMIT_EXCEEDED`.
 */
export function openRevocation(
  bytes: Uint8Array,
  admit: (raw: Uint8Array, agentId: string) => PublicKey = publicKey,
): Revocation {
  const document = openDocument(bytes, LIMITS.revocation, 'revocation')
  const fields = new Fields(document.value, 'revocation')
  const agentId = fields.agentId()
  const signer = admit(fields.key('signer'), agentId)
  verifyDocument('revocation', document, signer)
  const key = fields.text('key', 71)
  if (!FINGERPRINT.test(key)) fields.refuse('key', 'is not a fingerprint')
  const certificates = readCertificates(fields)
  return {
    network: fields.network(),
    agent_id: agentId,
    key,
    serial: fields.natural('serial'),
    reason: fields.text('reason', 256),
    signer: signer.raw,
    ...(certificates.length > 0 ? { certificates } : {}),
  }
}
