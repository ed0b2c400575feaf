import { existsSync, writeFileSync } from 'node:fs'
import {
  type Certificate,
  checkName,
  type DocumentFile,
  FINGERPRINT,
  HermesError,
  isUnder,
  type PublicKey,
  readCertificate,
  type SignedDocument,
  type SigningKey,
  signCertificate,
  signRevocation,
  toBase64url,
  toFile,
} from '@hermes-peer/protocol'
import { type Clock, systemClock } from '../clock.ts'
import { DEFAULTS } from '../defaults.ts'
import { systemRandom } from '../random.ts'
import { readCertificateFile, UNPROVEN, writeCertificateFile } from './certificate-file.ts'
import { loadKey, loadOrCreateKey } from './key-file.ts'
import { publicPem, readPublicKey } from './public-key-file.ts'

/** A key that was made: its public half, and what it is called in logs and lists. */
export interface MadeKey {
  /** Raw, in base64url. */
  readonly key: string
  readonly fingerprint: string
}

interface Timed {
  /** How long the certificate holds, ms. Default one year. */
  lifeMs?: number
  /** Orders the certificates of one agent: of two the higher one counts. Default: the time, ms. */
  serial?: number
  /** Default: that of this machine. */
  clock?: Pick<Clock, 'now'>
}

const YEAR_MS = 365 * 86_400_000

/**
 * Makes the key of an organisation: the private half at `path` (mode 0600; keep it offline), the public half beside it as
 * `<path>.pub`, which every peer gets as `trust.org`. Throws `INVALID_KEY_FILE` where there is one already, `STORAGE_FAILED`.
 */
export function makeOrganisationKey(path: string): MadeKey {
  const key = makeKey(path)
  writeFileSync(`${path}.pub`, publicPem(key))
  return madeKey(key)
}

export interface TeamKeyOptions extends Timed {
  /** The private key of the organisation. */
  organisation: string
  /** Where the team's private key goes; its certificate goes to `<path>.cert`. */
  path: string
  network: string
  team: string
  /** The team may certify agent ids that are this, or begin with it and a `/`. */
  prefix: string
  /** Roles that it may give. Default none. */
  roles?: readonly string[]
}

/** Makes a key that may certify agents of one team. Throws `INVALID_KEY_FILE`, `INVALID_NAME`, `INVALID_OPTION`, `STORAGE_FAILED`. */
export function makeTeamKey(options: TeamKeyOptions): MadeKey {
  const { organisation, path, network, team, prefix, roles = [] } = options
  const issuer = loadKey(organisation)
  checkNames({ network, team, roles })
  checkName('agent_id', prefix, 'prefix')
  const life = lifeOf(options)
  const key = makeKey(path)
  const certificate = { kind: 'team', network, team, team_key: key.raw, prefix, roles, ...life } as const
  writeCertificateFile(`${path}.cert`, key, [signCertificate(certificate, issuer)])
  return madeKey(key)
}

export interface CertifyAgentOptions extends Timed {
  /** The private key of the organisation, or of a team; then the team's certificate is at `<issuer>.cert`, unless `issuerCertificate` says otherwise. */
  issuer: string
  issuerCertificate?: string
  network: string
  agentId: string
  /** The agent's public key, raw in base64url, or the path of its key file. */
  key: string
  team: string
  roles?: readonly string[]
  /** Where the certificates go: what the agent gets as `certificate`. */
  path: string
}

/**
 * Certifies that a key speaks for an agent id, in a team and in roles. Throws `INVALID_OPTION` for what a team key may not certify,
 * `INVALID_NAME`, `INVALID_KEY_FILE`, `INVALID_CERTIFICATE`, `STORAGE_FAILED`.
 */
export function certifyAgent(options: CertifyAgentOptions): void {
  const { issuer, issuerCertificate = `${issuer}.cert`, network, agentId, team, roles = [], path } = options
  const signer = loadKey(issuer)
  checkNames({ network, team, roles })
  checkName('agent_id', agentId, 'agentId')
  const key = readPublicKey(options.key, 'key')
  const above =
    options.issuerCertificate !== undefined || existsSync(issuerCertificate)
      ? readCertificateFile(issuerCertificate, 'issuerCertificate').certificates
      : []
  if (above.length > 0) checkTeam(above, signer.publicKey, { network, agentId, team, roles })
  const certificate = {
    kind: 'organisation',
    network,
    agent_id: agentId,
    agent_key: key.raw,
    team,
    roles,
    ...lifeOf(options),
  } as const
  writeCertificateFile(path, key, [...above, signCertificate(certificate, signer)])
}

export interface CertifyInstanceOptions extends Timed {
  /** The private key of the agent: it stays here. */
  agentKey: string
  network: string
  agentId: string
  /** Certificates of an organisation for the agent key, if there are any. */
  certificate?: string
  /** Where the new key goes: what the peer gets as `identity`. Its certificates go to `<path>.cert`, for its `certificate`. */
  path: string
}

/**
 * Makes an instance key for an agent whose own key stays offline; of two the later one counts. `lifeMs` defaults to 90 days.
 * Throws `INVALID_KEY_FILE`, `INVALID_NAME`, `INVALID_CERTIFICATE`, `STORAGE_FAILED`.
 */
export function certifyInstance(options: CertifyInstanceOptions): MadeKey {
  const { agentKey, network, agentId, certificate, path } = options
  const signer = loadKey(agentKey)
  checkNames({ network })
  checkName('agent_id', agentId, 'agentId')
  const above = certificate === undefined ? [] : readCertificateFile(certificate, 'certificate').certificates
  const life = lifeOf({ lifeMs: DEFAULTS.instanceLifeMs, ...options })
  const key = makeKey(path)
  const instance = { kind: 'instance', network, agent_id: agentId, instance_key: key.raw, ...life } as const
  writeCertificateFile(`${path}.cert`, signer.publicKey, [...above, signCertificate(instance, signer)])
  return madeKey(key)
}

export interface RevocationOptions {
  /** The private key of the agent itself, or of the organisation. */
  signer: string
  /** Certificates of the agent key that signs: for those who have not met the agent. */
  certificate?: string
  network: string
  /** Whose key it was; for a team key, the prefix of its certificate. */
  agentId: string
  /** Fingerprint of the key, `sha256:…`. */
  key: string
  /** At most 256 characters. */
  reason: string
  clock?: Pick<Clock, 'now'>
}

/** Makes a revocation, which any peer can publish. Throws `INVALID_OPTION`, `INVALID_NAME`, `INVALID_KEY_FILE`, `INVALID_CERTIFICATE`. */
export function makeRevocation(options: RevocationOptions): DocumentFile {
  const { signer, certificate, network, agentId, key, reason, clock = systemClock() } = options
  checkNames({ network })
  checkName('agent_id', agentId, 'agentId')
  checkRevocation({ key, reason })
  const certificates = certificate === undefined ? [] : readCertificateFile(certificate, 'certificate').certificates
  const fields = { network, agent_id: agentId, key, serial: clock.now(), reason, certificates }
  return toFile(signRevocation(fields, loadKey(signer)))
}

export function checkRevocation({ key, reason }: { key: unknown; reason: unknown }): void {
  if (typeof key !== 'string' || !FINGERPRINT.test(key)) refuse('key', 'must be a fingerprint, sha256:<64 hex digits>')
  if (typeof reason !== 'string' || reason.length > 256) refuse('reason', 'must be a text of at most 256 characters')
}

/** The certificate that an agent key signs for a key of its instance. */
export function instanceCertificate(options: {
  network: string
  agentId: string
  agentKey: SigningKey
  key: PublicKey
  serial: number
  now: number
  lifeMs: number
}): SignedDocument {
  const { network, agentId, agentKey, key, serial, now, lifeMs } = options
  const certificate: Certificate = {
    kind: 'instance',
    network,
    agent_id: agentId,
    instance_key: key.raw,
    serial,
    not_before: now,
    not_after: now + lifeMs,
  }
  return signCertificate(certificate, agentKey)
}

/** Says now what every peer would say later: that key may not certify this. */
function checkTeam(
  above: readonly SignedDocument[],
  signer: PublicKey,
  wanted: { network: string; agentId: string; team: string; roles: readonly string[] },
): void {
  const said = readCertificate(above[0] as SignedDocument, UNPROVEN)
  if (said.kind !== 'team' || above.length > 1) refuse('issuerCertificate', 'is not that of a team')
  if (toBase64url(said.team_key) !== toBase64url(signer.raw)) refuse('issuerCertificate', 'is that of another key')
  if (said.network !== wanted.network) refuse('network', `must be ${said.network}: the team certifies for it only`)
  if (said.team !== wanted.team) refuse('team', `must be ${said.team}: the key is of that team`)
  if (!isUnder(said.prefix, wanted.agentId)) refuse('agentId', `must be ${said.prefix}, or begin with ${said.prefix}/`)
  const other = wanted.roles.find((role) => !said.roles.includes(role))
  if (other !== undefined) refuse('roles', `may be ${said.roles.join(', ') || 'none'}: the team may not give ${other}`)
}

function makeKey(path: string): PublicKey {
  if (existsSync(path)) {
    throw new HermesError('INVALID_KEY_FILE', {
      message: `path: there is a file at ${path} already`,
      hint: 'A key is never written over: choose another path.',
      details: { field: 'path' },
    })
  }
  return loadOrCreateKey(path, systemRandom()).publicKey
}

const madeKey = ({ raw, fingerprint }: PublicKey): MadeKey => ({ key: toBase64url(raw), fingerprint })

function lifeOf({ lifeMs = YEAR_MS, serial, clock = systemClock() }: Timed) {
  const now = clock.now()
  if (!(Number.isSafeInteger(lifeMs) && lifeMs > 0)) refuse('lifeMs', 'must be a whole number of milliseconds')
  if (serial !== undefined && !(Number.isSafeInteger(serial) && serial > 0))
    refuse('serial', 'must be a whole number above 0')
  return { serial: serial ?? now, not_before: now, not_after: now + lifeMs }
}

function checkNames({
  network,
  team,
  roles = [],
}: {
  network: string
  team?: string
  roles?: readonly string[]
}): void {
  checkName('network', network, 'network')
  if (team !== undefined) checkName('topic', team, 'team')
  if (!Array.isArray(roles) || roles.length > 32) refuse('roles', 'must be a list of at most 32 names')
  for (const role of roles) checkName('topic', role, 'roles')
}

function refuse(field: string, why: string): never {
  throw new HermesError('INVALID_OPTION', { message: `${field} ${why}`, details: { field } })
}
