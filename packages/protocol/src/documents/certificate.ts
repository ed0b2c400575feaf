import { toBase64url } from '../bytes/parts.ts'
import { type PublicKey, publicKey, type SigningKey } from '../crypto/keys.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS } from '../limits.ts'
import { isAgentId, isName } from '../names.ts'
import { Fields } from './fields.ts'
import { openDocument, type SignedDocument, signDocument, verifyDocument } from './signed.ts'

interface Validity {
  readonly network: string
  readonly serial: number
  /** Wall clock, ms. */
  readonly not_before: number
  readonly not_after: number
}

/** Signed by the agent key: this libp2p key runs as that agent. */
export interface InstanceCertificate extends Validity {
  readonly kind: 'instance'
  readonly agent_id: string
  /** Raw key, 32 bytes. */
  readonly instance_key: Uint8Array
}

/** Signed by the organisation key, or by a team key: this key speaks for that agent id, in that team and these roles. */
export interface OrganisationCertificate extends Validity {
  readonly kind: 'organisation'
  readonly agent_id: string
  readonly agent_key: Uint8Array
  readonly team: string
  readonly roles: readonly string[]
}

/**
 * Signed by the organisation key: this key may sign organisation certificates, for that team, for agent ids that are `prefix` or
 * begin with `prefix/`, and with these roles only.
 */
export interface TeamCertificate extends Validity {
  readonly kind: 'team'
  readonly team: string
  readonly team_key: Uint8Array
  readonly prefix: string
  readonly roles: readonly string[]
}

export type Certificate = InstanceCertificate | OrganisationCertificate | TeamCertificate

const KEY_OF = { instance: 'instance_key', organisation: 'agent_key', team: 'team_key' } as const
const MOST_ROLES = 32

export function signCertificate(certificate: Certificate, key: SigningKey): SignedDocument {
  const field = KEY_OF[certificate.kind]
  const raw = (certificate as unknown as Record<string, Uint8Array>)[field] as Uint8Array
  return signDocument('certificate', { ...certificate, [field]: toBase64url(raw) }, key)
}

/** What it says it is, not verified. Throws as `openDocument` does. */
export function certificateKind(bytes: Uint8Array): unknown {
  return new Fields(openDocument(bytes, LIMITS.certificate, 'certificate').value, 'certificate').raw('kind')
}

/** Reads a certificate and checks its signature and the key it is about, not its life. Throws `BAD_SIGNATURE`, `MALFORMED`, `BAD_KEY`. */
export function readCertificate(bytes: Uint8Array, issuer: PublicKey): Certificate {
  const document = openDocument(bytes, LIMITS.certificate, 'certificate')
  verifyDocument('certificate', document, issuer)
  const fields = new Fields(document.value, 'certificate')
  const kind = fields.raw('kind')
  const validity: Validity = {
    network: fields.network(),
    serial: fields.natural('serial'),
    not_before: fields.natural('not_before'),
    not_after: fields.natural('not_after'),
  }
  if (kind === 'instance') {
    return { kind, agent_id: fields.agentId(), ...validity, instance_key: admitted(fields.key('instance_key')) }
  }
  if (kind !== 'organisation' && kind !== 'team') fields.refuse('kind', 'is not instance, organisation or team')
  const named = kind === 'organisation' ? { agent_id: fields.agentId() } : undefined
  const team = fields.text('team', 64)
  if (!isName(team)) fields.refuse('team', 'is not a name')
  const roles = fields.texts('roles', MOST_ROLES, 64, isName)
  if (named)
    return { kind: 'organisation', ...named, ...validity, agent_key: admitted(fields.key('agent_key')), team, roles }
  const prefix = fields.text('prefix', 128)
  if (!isAgentId(prefix)) fields.refuse('prefix', 'is not the beginning of an agent id, cut at a /')
  return { kind: 'team', ...validity, team, team_key: admitted(fields.key('team_key')), prefix, roles }
}

/** Throws `EXPIRED` when `now` lies outside its life by more than `toleranceMs`. */
export function checkLife(certificate: Certificate, now: number, toleranceMs = 0): void {
  const { not_before, not_after } = certificate
  if (now >= not_before - toleranceMs && now <= not_after + toleranceMs) return
  const whose = certificate.kind === 'team' ? `team ${certificate.team}` : certificate.agent_id
  throw new HermesError('EXPIRED', {
    message: `the ${certificate.kind} certificate of ${whose} holds from ${iso(not_before)} to ${iso(not_after)}, now is ${iso(now)}`,
  })
}

/** Reads a certificate and checks signature, validity and the key it is about: `readCertificate`, then `checkLife`. */
export function openCertificate(bytes: Uint8Array, issuer: PublicKey, now: number): Certificate {
  const certificate = readCertificate(bytes, issuer)
  checkLife(certificate, now)
  return certificate
}

/** The raw key, once it has passed the check that every key passes. */
function admitted(raw: Uint8Array): Uint8Array {
  return publicKey(raw).raw
}

/** A far away time has no date. */
function iso(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString()
}
