import { domain, hex, join, partOf } from './bytes.ts'
import { sha256, type VerifyingKey } from './ed25519.ts'
import { type Parts, type RawHop, readFrame } from './frame.ts'
import { type Header, readHeader } from './header.ts'
import { type Arrival, readHops } from './hops.ts'
import { type Json, type JsonMap, parseJson } from './json.ts'
import { coversAll, LEAF_PREFIX, proves } from './merkle.ts'
import { parseMsgpack } from './msgpack.ts'
import { Refused } from './refused.ts'

/** What an accepted envelope says. */
export interface View {
  header: Header
  payload: Json
  leaf: string
  hops: JsonMap[]
}

export const signedBytes = (header: Uint8Array): Uint8Array => join(domain('envelope'), partOf(header))

export const leafOf = (header: Uint8Array): Uint8Array => sha256(LEAF_PREFIX, signedBytes(header))

/** A whole frame in the order of the text: decode, key, signature or batch, payload hash, hops, payload. */
export function readArrival(bytes: Uint8Array, arrival: Arrival): View[] {
  const frame = readFrame(bytes)
  const envelopes = frame.tag === 2 ? frame.envelopes : [frame.parts]
  const headers = envelopes.map(({ header }) => readHeader(header))
  const leaves = envelopes.map(({ header }) => leafOf(header))
  const keys = headers.map((header) => keyOfSender(header, arrival))
  const [key] = keys
  if (key === undefined || keys.some((other) => other.fingerprint !== key.fingerprint)) {
    throw new Refused('key', 'one batch has one signer')
  }
  const [leaf] = leaves as [Uint8Array]
  const signed =
    frame.tag === 0
      ? key.verifies(signedBytes(frame.parts.header), frame.signature)
      : frame.tag === 1
        ? proves(key, leaf, frame.proof)
        : coversAll(key, leaves, frame.signature)
  if (!signed) throw new Refused('signature', 'not signed by its sender')
  const hops = frame.tag === 2 ? [] : frame.hops
  return headers.map((header, index) =>
    readOne(header, envelopes[index] as Parts, leaves[index] as Uint8Array, hops, arrival),
  )
}

function keyOfSender(header: Header, arrival: Arrival): VerifyingKey {
  const sender = header.sender as JsonMap
  const key = arrival.keyOf(sender.agent_id as string)
  if (key === undefined) throw new Refused('key', 'an unknown sender')
  if (key.fingerprint !== sender.key) throw new Refused('key', 'a key that does not speak for the sender')
  return key
}

function readOne(header: Header, parts: Parts, leaf: Uint8Array, raw: RawHop[], arrival: Arrival): View {
  const sender = header.sender as JsonMap
  const digest = hex(sha256(parts.payload))
  if (header.payload_size !== parts.payload.length || header.payload_sha256 !== digest) {
    throw new Refused('payload', 'not the payload of this header')
  }
  const hops = readHops(raw, header, leaf, arrival)
  if (hops.length === 0 && !isAnswer(header) && sender.agent_id !== arrival.neighbour) {
    throw new Refused('hops', 'not said by the neighbour, and nobody forwarded it')
  }
  const payload =
    header.content_type === 'application/msgpack' ? parseMsgpack(parts.payload) : parseJson(parts.payload, 'payload')
  return { header, payload, leaf: hex(leaf), hops }
}

const isAnswer = (header: Header): boolean => ['response', 'ack', 'error', 'end'].includes(header.message_type as string)
