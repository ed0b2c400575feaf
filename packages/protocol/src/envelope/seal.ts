import { uvarintLength, writeUvarint } from '../bytes/varint.ts'
import { domainOf } from '../crypto/domains.ts'
import type { PublicKey, SigningKey } from '../crypto/keys.ts'
import { sha256Hex } from '../crypto/sha256.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS } from '../limits.ts'
import { type EnvelopeParts, encodeSingle, type ProvenFrame, type SingleFrame } from './frame.ts'
import { encodeHeader } from './header.ts'
import type { Header, HeaderDraft } from './header-types.ts'
import { decodeProof, type RootMemory, verifyProof } from './merkle.ts'

const DOMAIN = domainOf('envelope')

/** 0x00 ‖ M, so that the leaf is the hash of the whole and M a view into it. */
function prefixed(header: Uint8Array): Uint8Array {
  const at = 1 + DOMAIN.length + 1
  const out = Buffer.allocUnsafe(at + uvarintLength(header.length) + header.length)
  out[0] = 0
  out.set(DOMAIN, 1)
  out[at - 1] = 0
  out.set(header, writeUvarint(out, at, header.length))
  return out
}

/** M = "hermes-peer/envelope/1" ‖ 0x00 ‖ part(header bytes as sent): what the signature of one envelope covers. */
export function signedBytesOf(header: Uint8Array): Uint8Array {
  return prefixed(header).subarray(1)
}

/** SHA-256(0x00 ‖ M) in hex: names this attempt, and is what `in_reply_to` holds. */
export function leafOf(header: Uint8Array): string {
  return sha256Hex(prefixed(header))
}

export interface SealedEnvelope {
  /** The whole frame (tag 0, no hops), ready for a link. */
  readonly frame: Uint8Array
  readonly leaf: string
}

/** What a payload adds to the header. */
export function bindPayload(payload: Uint8Array): Pick<Header, 'payload_sha256' | 'payload_size'> {
  return { payload_sha256: sha256Hex(payload), payload_size: payload.length }
}

/** Encodes and signs one envelope. Throws `PAYLOAD_TOO_LARGE` when header and payload pass `limit` bytes together (default 1 MiB). */
export function sealEnvelope(
  draft: HeaderDraft,
  payload: Uint8Array,
  key: SigningKey,
  limit: number = LIMITS.envelope,
): SealedEnvelope {
  const header = encodeHeader(draft)
  const size = header.length + payload.length
  if (size > limit) {
    throw new HermesError('PAYLOAD_TOO_LARGE', {
      message: `the envelope has ${size} bytes, the limit is ${limit}`,
      details: { size, limit },
    })
  }
  const bytes = prefixed(header)
  const signature = key.sign(bytes.subarray(1))
  return { frame: encodeSingle({ header, payload, signature, hops: [] }), leaf: sha256Hex(bytes) }
}

/**
 * Checks the signature (tag 0) or the batch proof (tag 1) over the header bytes as received.
 * Returns the leaf. Throws `BAD_SIGNATURE` or `BAD_PROOF`.
 */
export function verifyEnvelope(frame: SingleFrame | ProvenFrame, key: PublicKey, memory?: RootMemory): string {
  const bytes = prefixed(frame.header)
  const leaf = sha256Hex(bytes)
  if (frame.tag === 0) {
    if (!key.verify(bytes.subarray(1), frame.signature)) throw new HermesError('BAD_SIGNATURE')
    return leaf
  }
  const proof = decodeProof(frame.proof)
  if (!verifyProof(Buffer.from(leaf, 'hex'), proof, key, memory)) throw new HermesError('BAD_PROOF')
  return leaf
}

/** Checks that the payload is the one the header was signed with. Throws `PAYLOAD_MISMATCH`. */
export function verifyPayload(header: Header, { payload }: EnvelopeParts): void {
  if (payload.length !== header.payload_size) {
    throw new HermesError('PAYLOAD_MISMATCH', {
      message: `the payload has ${payload.length} bytes, the header says ${header.payload_size}`,
    })
  }
  if (sha256Hex(payload) !== header.payload_sha256) {
    throw new HermesError('PAYLOAD_MISMATCH', { message: 'the payload does not have the hash that the header says' })
  }
}
