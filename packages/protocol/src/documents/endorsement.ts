import { toBase64url } from '../bytes/parts.ts'
import { type PublicKey, publicKey, type SigningKey } from '../crypto/keys.ts'
import { LIMITS } from '../limits.ts'
import { isCapabilityName } from '../names.ts'
import { Fields } from './fields.ts'
import { openDocument, type SignedDocument, signDocument, verifyDocument } from './signed.ts'

/** One agent vouches for another in one capability: worth as much as whoever reads it trusts the endorser. */
export interface Endorsement {
  readonly network: string
  readonly endorser: string
  /** Raw key of the endorser, 32 bytes. */
  readonly key: Uint8Array
  /** Who is vouched for. */
  readonly agent_id: string
  readonly capability: string
  /** Wall clock, ms. */
  readonly issued_at: number
  readonly expires_at: number
}

export function signEndorsement(endorsement: Endorsement, key: SigningKey): SignedDocument {
  return signDocument('endorsement', { ...endorsement, key: toBase64url(endorsement.key) }, key)
}

export interface OpenedEndorsement {
  readonly endorsement: Endorsement
  readonly key: PublicKey
}

/**
 * Reads an endorsement and checks that the key in it signed it; whether that key speaks for the endorser, and whether it still holds, is
 * for the reader to say. `keys` checks the key that is to verify it. Throws `BAD_SIGNATURE`, `MALFORMED` that names the field, `BAD_KEY`,
 * `LIMIT_EXCEEDED`.
 */
export function openEndorsement(
  bytes: Uint8Array,
  keys: (raw: Uint8Array, agentId: string) => PublicKey = publicKey,
): OpenedEndorsement {
  const document = openDocument(bytes, LIMITS.endorsement, 'endorsement')
  const fields = new Fields(document.value, 'endorsement')
  const endorser = fields.agentId('endorser')
  const key = keys(fields.key(), endorser)
  verifyDocument('endorsement', document, key)
  const capability = fields.raw('capability')
  if (!isCapabilityName(capability)) fields.refuse('capability', 'is not a capability name')
  return {
    key,
    endorsement: {
      network: fields.network(),
      endorser,
      key: key.raw,
      agent_id: fields.agentId(),
      capability: capability as string,
      issued_at: fields.natural('issued_at'),
      expires_at: fields.natural('expires_at'),
    },
  }
}
