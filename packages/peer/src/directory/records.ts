import {
  fingerprintOf,
  fromBase64url,
  HermesError,
  LIMITS,
  openDocument,
  openManifest,
  publicKey,
} from '@hermes-peer/protocol'
import type { RecordKinds } from '../network/records.ts'

export interface RecordKindsOptions {
  readonly networkName: string
  /** Longest life of a manifest, ms, from now on. */
  readonly mostLifeMs: number
  /** Wall clock, ms. */
  now(): number
  /** Difference of clocks that is put up with, ms. */
  readonly toleranceMs: number
}

/** Length and signature of a document around its body. */
const AROUND = 80

/**
 * The kinds of records that the DHT of a network keeps: `/hermes-manifest/<fingerprint of the agent key>`, the signed manifest of that
 * key, up to 16 KiB. A hint only: the manifest that counts comes over the link.
 */
export function recordKinds({ networkName, mostLifeMs, now, toleranceMs }: RecordKindsOptions): RecordKinds {
  return {
    'hermes-manifest': {
      mostBytes: LIMITS.manifestRecord + AROUND,
      check(fingerprint, value) {
        const { value: claimed } = openDocument(value, LIMITS.manifestRecord, 'manifest')
        const raw = keyIn(claimed)
        // Cheap, and before the check of the key: the name says which key it must be.
        if (!raw || fingerprintOf(raw) !== fingerprint) {
          throw new HermesError('IDENTITY_MISMATCH', { message: `the manifest is not that of the key ${fingerprint}` })
        }
        const { network, serial, expires_at: expiresAt } = openManifest(value, publicKey(raw))
        if (network !== networkName) throw new HermesError('WRONG_NETWORK')
        if (expiresAt > now() + mostLifeMs + toleranceMs) {
          throw new HermesError('EXPIRY_TOO_FAR', { message: `the manifest would live until ${expiresAt}` })
        }
        return { serial, expiresAt }
      },
    },
  }
}

function keyIn(document: unknown): Uint8Array | undefined {
  const key = typeof document === 'object' && document !== null ? (document as { key?: unknown }).key : undefined
  const raw = typeof key === 'string' ? fromBase64url(key) : undefined
  return raw?.length === 32 ? raw : undefined
}
