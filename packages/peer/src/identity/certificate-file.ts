import { readFileSync } from 'node:fs'
import {
  fromBase64url,
  fromFile,
  HermesError,
  type PublicKey,
  publicKey,
  type SignedDocument,
  toBase64url,
  toFile,
} from '@hermes-peer/protocol'
import { writePrivateFile } from './private-file.ts'

/** The certificates of one agent, as a file holds them: `{key, certificates: [{document, signature}, …]}`. */
export interface CertificateFile {
  /** The agent key; undefined in a file that holds only documents. */
  readonly key: PublicKey | undefined
  readonly certificates: readonly SignedDocument[]
}

/** Reads such a file, or one that holds a single `{document, signature}` or a list of them. Throws `INVALID_CERTIFICATE` that names it. */
export function readCertificateFile(path: string, field: string): CertificateFile {
  const refuse = (why: string, cause?: unknown): never => {
    throw new HermesError('INVALID_CERTIFICATE', {
      message: `${field}: ${path} ${why}`,
      details: { field },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8').replace(/^\uFEFF/, ''))
  } catch (cause) {
    return refuse(`cannot be read as JSON: ${(cause as Error).message}`, cause)
  }
  try {
    return parseCertificates(value)
  } catch (cause) {
    return refuse(`does not hold certificates: ${(cause as Error).message}`, cause)
  }
}

/** The same of a value that was read already. Throws `MALFORMED`, `BAD_KEY`. */
export function parseCertificates(value: unknown): CertificateFile {
  const whole = typeof value === 'object' && value !== null && 'certificates' in value ? value : undefined
  const list = whole ? (whole as { certificates: unknown }).certificates : Array.isArray(value) ? value : [value]
  if (!Array.isArray(list)) throw new HermesError('MALFORMED', { message: 'certificates is not a list' })
  const certificates = list.map(fromFile)
  const text = (whole as { key?: unknown } | undefined)?.key
  if (text === undefined) return { key: undefined, certificates }
  const raw = typeof text === 'string' ? fromBase64url(text) : undefined
  if (!raw) throw new HermesError('MALFORMED', { message: 'key is not a key in base64url' })
  return { key: publicKey(raw), certificates }
}

/**
 * Stands in for the key of an organisation where it is not at hand: what a certificate says is then read, and not proven. Only for
 * one's own: it tells a mistake early, everybody else verifies.
 */
export const UNPROVEN: PublicKey = { raw: new Uint8Array(32), fingerprint: 'not at hand', verify: () => true }

export function certificateFile(key: PublicKey, certificates: readonly SignedDocument[]): object {
  return { key: toBase64url(key.raw), certificates: certificates.map(toFile) }
}

export function writeCertificateFile(path: string, key: PublicKey, certificates: readonly SignedDocument[]): void {
  writePrivateFile(path, `${JSON.stringify(certificateFile(key, certificates), null, 2)}\n`)
}
