import { toBase64url } from '../bytes/parts.ts'
import { type PublicKey, publicKey, type SigningKey } from '../crypto/keys.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS } from '../limits.ts'
import { isName } from '../names.ts'
import { Fields } from './fields.ts'
import { openDocument, type SignedDocument, signDocument, verifyDocument } from './signed.ts'

interface Validity {
  readonly network: string
  readonly agent_id: string
  readonly serial: number
  /** Wall clock, ms. */
  readonly not_before: number
  readonly not_after: number
}

/** Signed by the agent key: this libp2p key runs as that agent. */
export interface InstanceCertificate extends Validity {
  readonly kind: 'instance'
  /** Raw key, 32 bytes. */
  readonly instance_key: Uint8Array
}

/** Signed by the organisation key: this key speaks for that agent id, in these teams and roles. */
export interface OrganisationCertificate extends Validity {
  readonly kind: 'organisation'
  readonly agent_key: Uint8Array
  readonly team: string
  readonly roles: readonly string[]
}

export type Certificate = InstanceCertificate | OrganisationCertificate

export function signCertificate(certificate: Certificate, key: SigningKey): SignedDocument {
  const keys =
    certificate.kind === 'instance'
      ? { instance_key: toBase64url(certificate.instance_key) }
      : { agent_key: toBase64url(certificate.agent_key) }
  return signDocument('certificate', { ...certificate, ...keys }, key)
}

/**
 * Reads a certificate and checks signature, validity and the key it is about. Throws `BAD_SIGNATURE`, `MALFORMED`, `BAD_KEY`, or `EXPIRED` when `now`
 * lies outside its life.
 */
export function openCertificate(bytes: Uint8Array, issuer: PublicKey, now: number): Certificate {
  const document = openDocument(bytes, LIMITS.certificate, 'certificate')
  verifyDocument('certificate', document, issuer)
  const fields = new Fields(document.value, 'certificate')
  const validity: Validity = {
    network: fields.network(),
    agent_id: fields.agentId(),
    serial: fields.natural('serial'),
    not_before: fields.natural('not_before'),
    not_after: fields.natural('not_after'),
  }
  if (now < validity.not_before || now > validity.not_after) {
    throw new HermesError('EXPIRED', {
      message: `the certificate of ${validity.agent_id} holds from ${validity.not_before} to ${validity.not_after}, now is ${now}`,
    })
  }
  const kind = fields.raw('kind')
  if (kind === 'instance') return { kind, ...validity, instance_key: admitted(fields.key('instance_key')) }
  if (kind !== 'organisation') fields.refuse('kind', 'is not instance or organisation')
  const team = fields.text('team', 64)
  if (!isName(team)) fields.refuse('team', 'is not a name')
  return {
    kind: 'organisation',
    ...validity,
    agent_key: admitted(fields.key('agent_key')),
    team,
    roles: fields.texts('roles', 32, 64, isName),
  }
}

/** The raw key, once it has passed the check that every key passes. */
function admitted(raw: Uint8Array): Uint8Array {
  return publicKey(raw).raw
}
