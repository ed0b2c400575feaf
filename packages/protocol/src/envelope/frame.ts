import { Reader } from '../bytes/reader.ts'
import { uvarintLength, writeUvarint } from '../bytes/varint.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS, MAX_FRAME } from '../limits.ts'
import { MAX_HOPS } from './header-types.ts'

/** A hop as it was sent. */
export interface SignedHop {
  /** The bytes of its JSON. */
  readonly body: Uint8Array
  readonly signature: Uint8Array
}

/** One envelope as it was sent; the parts are views into the received bytes. */
export interface EnvelopeParts {
  readonly header: Uint8Array
  readonly payload: Uint8Array
}

export interface SingleFrame extends EnvelopeParts {
  readonly tag: 0
  readonly signature: Uint8Array
  readonly hops: readonly SignedHop[]
}

export interface ProvenFrame extends EnvelopeParts {
  readonly tag: 1
  /** signature(64) ‖ uvarint(index) ‖ uvarint(count) ‖ siblings, see `decodeProof`. */
  readonly proof: Uint8Array
  readonly hops: readonly SignedHop[]
}

export interface BatchFrame {
  readonly tag: 2
  readonly signature: Uint8Array
  readonly envelopes: readonly EnvelopeParts[]
}

export type Frame = SingleFrame | ProvenFrame | BatchFrame

const SIGNATURE = 64
const MAX_HOP = 2 * 1024

/** A whole frame, length included, of one envelope with its own signature. */
export function encodeSingle(frame: Omit<SingleFrame, 'tag'>): Uint8Array {
  const hops = hopsLength(frame.hops)
  const body = 1 + partLength(frame.header) + partLength(frame.payload) + SIGNATURE + hops
  const out = Buffer.allocUnsafe(uvarintLength(body) + body)
  let at = writeUvarint(out, 0, body)
  out[at++] = 0
  at = writePart(out, at, frame.header)
  at = writePart(out, at, frame.payload)
  out.set(frame.signature, at)
  writeHops(out, at + SIGNATURE, frame.hops)
  return out
}

/** A whole frame of one envelope that proves itself as a member of a signed batch. */
export function encodeProven(frame: Omit<ProvenFrame, 'tag'>): Uint8Array {
  const body = 1 + partLength(frame.header) + partLength(frame.payload) + frame.proof.length + hopsLength(frame.hops)
  const out = Buffer.allocUnsafe(uvarintLength(body) + body)
  let at = writeUvarint(out, 0, body)
  out[at++] = 1
  at = writePart(out, at, frame.header)
  at = writePart(out, at, frame.payload)
  out.set(frame.proof, at)
  writeHops(out, at + frame.proof.length, frame.hops)
  return out
}

/** A whole batch frame. */
export function encodeBatch(frame: Omit<BatchFrame, 'tag'>): Uint8Array {
  let body = 1 + uvarintLength(frame.envelopes.length) + SIGNATURE
  for (const { header, payload } of frame.envelopes) body += partLength(header) + partLength(payload)
  const out = Buffer.allocUnsafe(uvarintLength(body) + body)
  let at = writeUvarint(out, 0, body)
  out[at++] = 2
  at = writeUvarint(out, at, frame.envelopes.length)
  out.set(frame.signature, at)
  at += SIGNATURE
  for (const { header, payload } of frame.envelopes) at = writePart(out, writePart(out, at, header), payload)
  return out
}

/**
 * Reads the body of a frame (what follows its length). Throws `UNKNOWN_TAG`, `LIMIT_EXCEEDED` or `MALFORMED`; nothing may be
 * left over.
 */
export function decodeFrame(body: Uint8Array): Frame {
  if (body.length > MAX_FRAME) throw tooLarge('the frame', body.length, MAX_FRAME)
  const reader = new Reader(body)
  const tag = reader.take(1, 'the tag')[0]
  if (tag === 0) {
    const envelope = readEnvelope(reader)
    const signature = reader.take(SIGNATURE, 'the signature')
    const hops = readHops(reader, 0)
    reader.end('the hops')
    return { tag, ...envelope, signature, hops }
  }
  if (tag === 1) {
    const envelope = readEnvelope(reader)
    const proof = readProof(reader)
    const hops = readHops(reader, proof.length)
    reader.end('the hops')
    return { tag, ...envelope, proof, hops }
  }
  if (tag === 2) {
    const count = reader.uvarint('the count of the batch')
    if (count < 1 || count > LIMITS.batchCount) {
      throw new HermesError('MALFORMED', {
        message: `a batch of ${count} envelopes, 1 to ${LIMITS.batchCount} are allowed`,
      })
    }
    const signature = reader.take(SIGNATURE, 'the signature')
    const envelopes = Array.from({ length: count }, () => readEnvelope(reader))
    reader.end('the batch')
    return { tag, signature, envelopes }
  }
  throw new HermesError('UNKNOWN_TAG', { message: `frame tag ${tag} is not known`, details: { tag } })
}

function readEnvelope(reader: Reader): EnvelopeParts {
  const header = reader.part(LIMITS.header, 'the header')
  const payload = reader.part(LIMITS.envelope - header.length, 'the payload')
  return { header, payload }
}

/** The proof has no length of its own: its count and index say how many siblings follow. */
function readProof(reader: Reader): Uint8Array {
  const signature = reader.take(SIGNATURE, 'the signature')
  const index = reader.uvarint('the index of the proof')
  const count = reader.uvarint('the count of the proof')
  if (count < 1 || count > LIMITS.batchCount || index >= count) {
    throw new HermesError('BAD_PROOF', { message: `index ${index} of ${count} cannot be in a batch` })
  }
  const siblings = reader.take(32 * siblingCount(index, count), 'the siblings of the proof')
  const out = new Uint8Array(SIGNATURE + uvarintLength(index) + uvarintLength(count) + siblings.length)
  out.set(signature)
  const at = writeUvarint(out, writeUvarint(out, SIGNATURE, index), count)
  out.set(siblings, at)
  return out
}

/** Length of the audit path of leaf `index` in an RFC 6962 tree of `count` leaves. */
export function siblingCount(index: number, count: number): number {
  if (count <= 1) return 0
  const left = splitPoint(count)
  return 1 + (index < left ? siblingCount(index, left) : siblingCount(index - left, count - left))
}

/** The largest power of two smaller than `count` (RFC 6962, 2.1). */
export function splitPoint(count: number): number {
  let power = 1
  while (power * 2 < count) power *= 2
  return power
}

function readHops(reader: Reader, proofLength: number): SignedHop[] {
  const before = reader.left
  const count = reader.uvarint('the count of hops')
  if (count > MAX_HOPS)
    throw new HermesError('LIMIT_EXCEEDED', { message: `${count} hops, at most ${MAX_HOPS} are allowed` })
  const hops: SignedHop[] = []
  for (let i = 0; i < count; i++) {
    const body = reader.part(MAX_HOP, 'a hop')
    hops.push({ body, signature: reader.take(SIGNATURE, 'the signature of a hop') })
  }
  const size = before - reader.left + proofLength
  if (size > LIMITS.proofAndHops) throw tooLarge('proof and hops', size, LIMITS.proofAndHops)
  return hops
}

function hopsLength(hops: readonly SignedHop[]): number {
  let length = uvarintLength(hops.length)
  for (const hop of hops) length += partLength(hop.body) + SIGNATURE
  return length
}

function writeHops(out: Uint8Array, offset: number, hops: readonly SignedHop[]): void {
  let at = writeUvarint(out, offset, hops.length)
  for (const hop of hops) {
    at = writePart(out, at, hop.body)
    out.set(hop.signature, at)
    at += SIGNATURE
  }
}

function partLength(bytes: Uint8Array): number {
  return uvarintLength(bytes.length) + bytes.length
}

function writePart(out: Uint8Array, offset: number, bytes: Uint8Array): number {
  const at = writeUvarint(out, offset, bytes.length)
  out.set(bytes, at)
  return at + bytes.length
}

function tooLarge(what: string, size: number, limit: number): HermesError {
  return new HermesError('LIMIT_EXCEEDED', {
    message: `${what}: ${size} bytes, the limit is ${limit}`,
    details: { size, limit },
  })
}
