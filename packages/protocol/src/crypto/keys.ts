import { ed25519 } from '@noble/curves/ed25519.js'
import { HermesError } from '../errors/hermes-error.ts'
import { ed25519Backend } from './backend.ts'
import { sha256Hex } from './sha256.ts'

/** An admitted Ed25519 public key. */
export interface PublicKey {
  /** 32 bytes. */
  readonly raw: Uint8Array
  /** `sha256:` and the lower-case hex SHA-256 of the raw key. */
  readonly fingerprint: string
  /** False for a wrong signature and for one that is not 64 bytes long; never throws. */
  verify(message: Uint8Array, signature: Uint8Array): boolean
}

export interface SigningKey {
  readonly publicKey: PublicKey
  /** The 32-byte seed: secret. */
  readonly seed: Uint8Array
  /** 64 bytes. */
  sign(message: Uint8Array): Uint8Array
}

export const FINGERPRINT = /^sha256:[0-9a-f]{64}$/

export function fingerprintOf(raw: Uint8Array): string {
  return `sha256:${sha256Hex(raw)}`
}

/**
 * Admits a raw public key. Throws `BAD_KEY` for anything but the canonical encoding of a point of the prime-order
 * group: Node's and libsodium's fast verifiers are only used behind this check, because with a small-order key one constant
 * signature can hold for any message.
 */
export function publicKey(raw: Uint8Array): PublicKey {
  const own = Uint8Array.from(raw)
  checkPoint(own)
  const verifies = ed25519Backend.verifier(own)
  return {
    raw: own,
    fingerprint: fingerprintOf(own),
    verify(message, signature) {
      if (signature.length !== 64) return false
      try {
        return verifies(message, signature)
      } catch {
        return false
      }
    },
  }
}

function checkPoint(raw: Uint8Array): void {
  const refuse = (why: string, cause?: unknown): never => {
    throw new HermesError('BAD_KEY', { message: `the public key ${why}`, ...(cause ? { cause } : {}) })
  }
  if (raw.length !== 32) refuse(`has ${raw.length} bytes, Ed25519 keys have 32`)
  let point: ReturnType<typeof ed25519.Point.fromBytes> | undefined
  try {
    point = ed25519.Point.fromBytes(raw)
  } catch (cause) {
    refuse('is not a canonical point of the curve', cause)
  }
  if (point?.isSmallOrder()) refuse('has small order')
  if (!point?.isTorsionFree()) refuse('is not in the prime-order group')
}

/** Throws `BAD_KEY` when the seed is not 32 bytes long. */
export function signingKey(seed: Uint8Array): SigningKey {
  if (seed.length !== 32) {
    throw new HermesError('BAD_KEY', { message: `the private key has ${seed.length} bytes, an Ed25519 seed has 32` })
  }
  const own = Uint8Array.from(seed)
  const key = publicKey(ed25519Backend.publicKeyOf(own))
  return { publicKey: key, seed: own, sign: ed25519Backend.signer(own, key.raw) }
}
