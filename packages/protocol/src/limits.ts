import { MAX_PAYLOAD_BYTES } from './payload/limits.ts'

/** Limits of the wire in bytes. A length is compared with its limit before anything is allocated. */
export const LIMITS = {
  /** One message before the handshake is over. */
  handshake: 8 * 1024,
  header: 4 * 1024,
  /** Header and payload of one envelope together. */
  envelope: 1024 * 1024,
  /** Proof, and hops, of one envelope: on top of it. */
  proofAndHops: 8 * 1024,
  /** One chunk of data on a stream, its kind and index not counted. */
  chunk: 64 * 1024,
  /** A payload that travels in chunks, because it does not fit in an envelope. */
  payload: MAX_PAYLOAD_BYTES,
  /** A whole batch frame (tag 2). */
  batch: 4 * 1024 * 1024,
  /** Envelopes in one batch. */
  batchCount: 16,
  /** A broadcast: a whole frame on a gossip topic. */
  broadcast: 64 * 1024,
  /** A manifest asked over a link; as a DHT record it is held to 16 KiB. */
  manifest: 64 * 1024,
  manifestRecord: 16 * 1024,
  /** A presence document on its topic. */
  presence: 16 * 1024,
  /** A certificate, and all of one chain together: with the rest of a hello, in base64url, they stay under `handshake`. */
  certificate: 2 * 1024,
  certificates: 5 * 1024,
  endorsement: 1024,
  /** A revocation, with the certificates of who signed it. */
  revocation: 8 * 1024,
  /** A whole chain: each link holds the one before in base64url. */
  delegation: 32 * 1024,
} as const

/** Largest body of a frame (tag included) after the handshake. */
export const MAX_FRAME = LIMITS.batch
/** Largest body of a frame of tag 0 or 1: envelope, two lengths, signature or proof, hops. */
export const MAX_SINGLE_FRAME = LIMITS.envelope + LIMITS.proofAndHops * 2 + 128
