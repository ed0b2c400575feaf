import { existsSync, readFileSync } from 'node:fs'
import {
  HermesError,
  kindsOf,
  openChain,
  openIssued,
  type PublicKey,
  type SignedDocument,
  type SigningKey,
  signingKey,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Random } from '../random.ts'
import { instanceCertificate } from './authority.ts'
import { certificateFile, parseCertificates, readCertificateFile, UNPROVEN } from './certificate-file.ts'
import { loadKey, loadOrCreateKey, parseKey, toPem } from './key-file.ts'
import { writePrivateFile } from './private-file.ts'

/** What of a peer's settings its keys depend on. */
export interface OwnSettings {
  readonly agentId: string
  readonly network: string
  /** Path of a file with certificates. */
  readonly certificate: string | undefined
  readonly tunables: Tunables
}

/** Under which keys this agent runs. */
export interface OwnKeys {
  /** Signs, and is the transport identity. */
  readonly key: SigningKey
  readonly agentKey: PublicKey
  readonly certificates: readonly SignedDocument[]
  /** The private agent key, where it is at hand: then this peer can rotate by itself, and revoke its own keys. */
  readonly agentSigner: SigningKey | undefined
}

export interface OwnKeysOptions {
  readonly settings: OwnSettings
  readonly keyFile: string
  readonly clock: Clock
  readonly random: Random
}

/**
 * Loads what the options name: the agent key (made when there is none and no certificate), or the key of an instance with its
 * certificate; and, where this peer has rotated before, the instance key that it has now. Throws `INVALID_KEY_FILE`,
 * `KEY_FILE_EXPOSED`, `INVALID_CERTIFICATE`, `STORAGE_FAILED`.
 */
export function loadOwnKeys(options: OwnKeysOptions): OwnKeys {
  const { settings, keyFile, clock, random } = options
  if (settings.certificate === undefined) {
    const key = loadOrCreateKey(keyFile, random)
    return withInstance({ key, agentKey: key.publicKey, certificates: [], agentSigner: key }, options)
  }
  const own = readInstance(keyFile, settings.certificate, settings, clock)
  return own.agentSigner ? withInstance(own, options) : own
}

/** A key and its certificates from two files, checked as every other peer will. */
export function readInstance(keyFile: string, certificatePath: string, settings: OwnSettings, clock: Clock): OwnKeys {
  const key = loadKey(keyFile)
  const file = readCertificateFile(certificatePath, 'certificate')
  const agentKey = file.key ?? key.publicKey
  check({ key, agentKey, certificates: file.certificates }, settings, clock, certificatePath)
  const same = agentKey.fingerprint === key.publicKey.fingerprint
  return { key, agentKey, certificates: file.certificates, agentSigner: same ? key : undefined }
}

/** Makes the next instance key, signed by the agent key, and stores it before anybody gets to see it. */
export function nextInstance(
  own: OwnKeys,
  serial: number,
  { settings, keyFile, clock, random }: OwnKeysOptions,
): OwnKeys {
  const { agentSigner, agentKey, certificates } = own
  if (!agentSigner) {
    throw new HermesError('INVALID_OPTION', {
      message: 'rotate: the agent key is not at hand, so no key of an instance can be certified here',
      hint: 'Make one with certifyInstance() where the agent key is, and give its files: rotate({ identity, certificate }).',
      details: { field: 'identity' },
    })
  }
  const key = signingKey(random.bytes(32))
  const certificate = instanceCertificate({
    network: settings.network,
    agentId: settings.agentId,
    agentKey: agentSigner,
    key: key.publicKey,
    serial,
    now: clock.now(),
    lifeMs: settings.tunables.instanceLifeMs,
  })
  const chain = [...issuedOf(certificates), certificate]
  const stored = { private_key: toPem(key.seed), ...certificateFile(agentKey, chain) }
  writePrivateFile(instanceFile(keyFile), `${JSON.stringify(stored, null, 2)}\n`)
  return { key, agentKey, certificates: chain, agentSigner }
}

export const instanceFile = (keyFile: string): string => `${keyFile}.instance`

/** Certificates of the organisation: all but that of an instance. */
export function issuedOf(certificates: readonly SignedDocument[]): readonly SignedDocument[] {
  const at = kindsOf(certificates).indexOf('instance')
  return at < 0 ? certificates : certificates.slice(0, at)
}

/** The instance key of the last rotation, if there was one; a new one where its certificate has run out meanwhile. */
function withInstance(own: OwnKeys, options: OwnKeysOptions): OwnKeys {
  const path = instanceFile(options.keyFile)
  if (!existsSync(path)) return own
  const refuse = (why: string, cause?: unknown): never => {
    throw new HermesError('INVALID_CERTIFICATE', {
      message: `identity: ${path} ${why}`,
      hint: `Put the file back as it was; without it other peers refuse this agent until its old key is welcome again.`,
      details: { field: 'identity' },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  let stored: { key: SigningKey; certificate: SignedDocument }
  try {
    const value = JSON.parse(readFileSync(path, 'utf8')) as { private_key?: unknown }
    const file = parseCertificates(value)
    if (file.key?.fingerprint !== own.agentKey.fingerprint) throw new Error('it belongs to another agent key')
    const certificate = file.certificates.at(-1)
    if (typeof value.private_key !== 'string' || !certificate) throw new Error('a part of it is missing')
    stored = { key: parseKey(value.private_key, path), certificate }
  } catch (cause) {
    return refuse(`does not hold the key of an instance: ${(cause as Error).message}`, cause)
  }
  // The organisation may have certified the agent key anew since.
  const chain = [...issuedOf(own.certificates), stored.certificate]
  const { network, agentId, tunables } = options.settings
  const shown = { agent_id: agentId, key: own.agentKey.raw, certificates: chain }
  try {
    // At its real time, without the tolerance: it is never read as expired here, but renewed.
    const { instance, signer } = openChain(shown, { network, now: 0, toleranceMs: Number.MAX_SAFE_INTEGER })
    if (!instance || signer.fingerprint !== stored.key.publicKey.fingerprint) throw new Error('its key is another one')
    if (instance.not_after - options.clock.now() < tunables.instanceRenewMs / 2) {
      return nextInstance(own, instance.serial + 1, options)
    }
  } catch (cause) {
    return refuse(`cannot be used: ${(cause as Error).message}`, cause)
  }
  return { ...own, key: stored.key, certificates: chain }
}

function check(
  { key, agentKey, certificates }: Pick<OwnKeys, 'key' | 'agentKey' | 'certificates'>,
  { network, agentId, tunables }: OwnSettings,
  clock: Clock,
  path: string,
): void {
  const refuse = (why: string, cause?: unknown): never => {
    throw new HermesError('INVALID_CERTIFICATE', {
      message: `certificate: ${path} ${why}`,
      details: { field: 'certificate' },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  const judging = { network, now: clock.now(), toleranceMs: tunables.maxClockOffsetMs }
  const shown = { agent_id: agentId, key: agentKey.raw, certificates }
  const chain = (() => {
    try {
      const { issued, signer } = openChain(shown, judging)
      if (issued.length > 0) openIssued({ ...shown, issued }, UNPROVEN, judging)
      return { signer }
    } catch (cause) {
      return refuse(`does not fit: ${(cause as Error).message}`, cause)
    }
  })()
  if (chain.signer.fingerprint !== key.publicKey.fingerprint) {
    refuse(`is for key ${chain.signer.fingerprint}, but identity is ${key.publicKey.fingerprint}`)
  }
}
