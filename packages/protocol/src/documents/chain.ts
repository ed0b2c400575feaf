import { equalBytes, fromBase64url, toBase64url } from '../bytes/parts.ts'
import { type PublicKey, publicKey } from '../crypto/keys.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS } from '../limits.ts'
import {
  type Certificate,
  certificateKind,
  checkLife,
  type InstanceCertificate,
  type OrganisationCertificate,
  readCertificate,
  type TeamCertificate,
} from './certificate.ts'
import type { Fields } from './fields.ts'

/** Who somebody says they are: in a handshake, a manifest, a presence report, a revocation. */
export interface Shown {
  readonly agent_id: string
  /** Raw agent key, 32 bytes. */
  readonly key: Uint8Array
  /** Of a team, of the organisation, of the instance: each at most once, in this order. */
  readonly certificates: readonly Uint8Array[]
}

export interface Judging {
  readonly network: string
  /** Wall clock, ms, and how far clocks may differ. */
  readonly now: number
  readonly toleranceMs: number
  /** Admits raw keys. Default `publicKey`. */
  readonly admit?: (raw: Uint8Array) => PublicKey
  /** Reads one certificate. Default `readCertificate`; one that remembers what it has verified saves the work. */
  readonly read?: (bytes: Uint8Array, issuer: PublicKey) => Certificate
}

/** The way from an agent key to the key that signs for it. */
export interface Chain {
  readonly agentKey: PublicKey
  /** The agent key itself, or the one that its instance certificate names. */
  readonly signer: PublicKey
  readonly instance: InstanceCertificate | undefined
  /** Certificates of the organisation, not verified: only who trusts an organisation knows its key. */
  readonly issued: readonly Uint8Array[]
}

/** What an organisation says of an agent, proven. */
export interface Issued {
  readonly organisation: OrganisationCertificate
  readonly team: TeamCertificate | undefined
}

/** Certificates of all kinds in one chain. */
const MOST = 3
const ORDER: readonly unknown[] = ['team', 'organisation', 'instance']

/** Throws `MALFORMED` for more than three, another order, or one kind twice; `LIMIT_EXCEEDED` where they are too long together. */
export function kindsOf(certificates: readonly Uint8Array[]): readonly Certificate['kind'][] {
  const size = certificates.reduce((sum, { length }) => sum + length, 0)
  if (size > LIMITS.certificates) {
    throw new HermesError('LIMIT_EXCEEDED', {
      message: `the certificates have ${size} bytes together, the limit is ${LIMITS.certificates}`,
    })
  }
  if (certificates.length > MOST) refuse(`are ${certificates.length}, at most ${MOST} make a chain`)
  const kinds = certificates.map((one) => certificateKind(one))
  let last = -1
  for (const kind of kinds) {
    const place = ORDER.indexOf(kind)
    if (place <= last)
      refuse('must be of a team, of the organisation, of the instance: each at most once, in this order')
    last = place
  }
  if (kinds[0] === 'team' && kinds[1] !== 'organisation') refuse('of a team need one that it has signed')
  return kinds as Certificate['kind'][]
}

/**
 * Finds the key that signs for who is shown, and checks that the agent key says so: network, agent id, life. Throws `BAD_KEY`,
 * `BAD_SIGNATURE`, `MALFORMED`, `EXPIRED`, `WRONG_NETWORK`, and `IDENTITY_MISMATCH` for a certificate of another agent.
 */
export function openChain(shown: Shown, judging: Judging): Chain {
  const { admit = publicKey, read = readCertificate } = judging
  const kinds = kindsOf(shown.certificates)
  const agentKey = admit(shown.key)
  const last = kinds.length - 1
  if (kinds[last] !== 'instance') {
    return { agentKey, signer: agentKey, instance: undefined, issued: shown.certificates }
  }
  const instance = read(shown.certificates[last] as Uint8Array, agentKey) as InstanceCertificate
  checkNetwork(instance, judging)
  checkAgent(instance, shown)
  checkLife(instance, judging.now, judging.toleranceMs)
  return { agentKey, signer: admit(instance.instance_key), instance, issued: shown.certificates.slice(0, last) }
}

/**
 * Checks what the organisation of that key says of who is shown. Throws as `openChain` does, `NOT_ALLOWED` without a certificate
 * or for one that the team had no right to sign, and `IDENTITY_MISMATCH` for one that names another agent or another key.
 */
export function openIssued(
  shown: Omit<Shown, 'certificates'> & { readonly issued: readonly Uint8Array[] },
  organisationKey: PublicKey,
  judging: Judging,
): Issued {
  const { admit = publicKey, read = readCertificate, now, toleranceMs } = judging
  const { issued } = shown
  if (issued.length === 0) {
    throw new HermesError('NOT_ALLOWED', { message: `${shown.agent_id} shows no certificate of the organisation` })
  }
  const kinds = kindsOf(issued)
  if (kinds[kinds.length - 1] !== 'organisation') refuse('do not end with one of the organisation')
  let issuer = organisationKey
  let team: TeamCertificate | undefined
  if (kinds[0] === 'team') {
    team = read(issued[0] as Uint8Array, organisationKey) as TeamCertificate
    checkNetwork(team, judging)
    checkLife(team, now, toleranceMs)
    issuer = admit(team.team_key)
  }
  const organisation = read(issued[issued.length - 1] as Uint8Array, issuer) as OrganisationCertificate
  checkNetwork(organisation, judging)
  checkAgent(organisation, shown)
  if (!equalBytes(organisation.agent_key, shown.key)) {
    throw new HermesError('IDENTITY_MISMATCH', { message: `the certificate of ${shown.agent_id} is for another key` })
  }
  checkLife(organisation, now, toleranceMs)
  if (team) checkRights(team, organisation)
  return { organisation, team }
}

/** Whether an agent id lies under a prefix: cut at a `/`, so that `bill` covers nothing of `billing`. */
export function isUnder(prefix: string, agentId: string): boolean {
  return agentId === prefix || agentId.startsWith(`${prefix}/`)
}

function checkRights(team: TeamCertificate, { agent_id, team: named, roles }: OrganisationCertificate): void {
  const no = (why: string): never => {
    throw new HermesError('NOT_ALLOWED', { message: `the key of team ${team.team} may not certify ${why}` })
  }
  if (!isUnder(team.prefix, agent_id)) no(`${agent_id}: only ${team.prefix} and what is under it`)
  if (named !== team.team) no(`${agent_id} for team ${named}`)
  const other = roles.find((role) => !team.roles.includes(role))
  if (other !== undefined) no(`${agent_id} in the role ${other}`)
}

function checkNetwork(certificate: Certificate, { network }: Judging): void {
  if (certificate.network === network) return
  throw new HermesError('WRONG_NETWORK', {
    message: `the ${certificate.kind} certificate is for network ${certificate.network}, this is ${network}`,
  })
}

function checkAgent(
  certificate: InstanceCertificate | OrganisationCertificate,
  { agent_id }: { agent_id: string },
): void {
  if (certificate.agent_id === agent_id) return
  throw new HermesError('IDENTITY_MISMATCH', {
    message: `${agent_id} shows an ${certificate.kind} certificate of ${certificate.agent_id}`,
  })
}

function refuse(why: string): never {
  throw new HermesError('MALFORMED', { message: `certificates ${why}`, details: { field: 'certificates' } })
}

/** The optional field `certificates` of a document. */
export function readCertificates(fields: Fields): readonly Uint8Array[] {
  if (!fields.has('certificates')) return []
  return fields
    .texts('certificates', MOST, 2 * LIMITS.certificate)
    .map((text) => fromBase64url(text) ?? fields.refuse('certificates', 'are not in base64url'))
}

/** The same as it stands in a document: left out when there are none. */
export function writtenCertificates(certificates: readonly Uint8Array[] | undefined): { certificates?: string[] } {
  return certificates && certificates.length > 0 ? { certificates: certificates.map(toBase64url) } : {}
}
