import { type Cursor, cursor } from './bytes.ts'
import { type Proof, readCount, readProof } from './merkle.ts'
import { Refused } from './refused.ts'

const KIB = 1024
const MAX_HEADER = 4 * KIB
const MAX_ENVELOPE = 1024 * KIB
const MAX_ON_TOP = 8 * KIB
const MAX_BATCH = 4 * 1024 * KIB
const MAX_HOP = 2 * KIB
// max_hops is at most 7, so no more than that many can ever be right.
const MAX_HOPS = 7

export interface Parts {
  header: Uint8Array
  payload: Uint8Array
}

export interface RawHop {
  json: Uint8Array
  signature: Uint8Array
}

export type RawFrame =
  | { tag: 0; parts: Parts; signature: Uint8Array; hops: RawHop[] }
  | { tag: 1; parts: Parts; proof: Proof; hops: RawHop[] }
  | { tag: 2; signature: Uint8Array; envelopes: Parts[] }

/** Cuts `part(tag body)` into its pieces; says nothing about what is in them. */
export function readFrame(bytes: Uint8Array): RawFrame {
  const whole = cursor(bytes, 'frame')
  const body = cursor(whole.part(MAX_BATCH), 'frame')
  whole.end()
  const frame = readBody(body)
  body.end()
  return frame
}

function readBody(at: Cursor): RawFrame {
  const tag = at.byte()
  if (tag === 2) return readBatch(at)
  if (tag !== 0 && tag !== 1) throw new Refused('tag', `unknown tag ${tag}`)
  const parts = readParts(at)
  if (tag === 0) {
    const signature = at.take(64)
    return { tag, parts, signature, hops: readOnTop(at, readHops) }
  }
  return readOnTop(at, () => ({ tag, parts, proof: readProof(at), hops: readHops(at) }))
}

function readOnTop<T>(at: Cursor, read: (at: Cursor) => T): T {
  if (at.left > MAX_ON_TOP) throw new Refused('size', 'more than 8 KiB of proof and hops')
  return read(at)
}

function readBatch(at: Cursor): RawFrame {
  const count = readCount(at, 'frame')
  const signature = at.take(64)
  const envelopes = Array.from({ length: count }, () => readParts(at))
  return { tag: 2, signature, envelopes }
}

function readParts(at: Cursor): Parts {
  const header = at.part(MAX_HEADER)
  const payload = at.part(MAX_ENVELOPE - header.length)
  return { header, payload }
}

function readHops(at: Cursor): RawHop[] {
  const count = at.uvarint()
  if (count > MAX_HOPS) throw new Refused('size', `${count} hops`)
  return Array.from({ length: count }, () => ({ json: at.part(MAX_HOP), signature: at.take(64) }))
}
