import { domain, hex, join, partOf } from './bytes.ts'
import { sha256, type VerifyingKey } from './ed25519.ts'
import { type Parts, type RawFrame, readFrame } from './frame.ts'
import { type Header, isAnswer, readHeader } from './header.ts'
import { type Arrival, readHops } from './hops.ts'
import { type Json, type JsonMap, parseJson } from './json.ts'
import { coversAll, proves } from './merkle.ts'
import { parseMsgpack } from './msgpack.ts'
import { Refused } from './refused.ts'

/** An envelope that is as its sender signed it; its payload has not been looked into. */
export interface Authentic {
  header: Header
  payload: Uint8Array
  leaf: string
  hops: JsonMap[]
}

export const signedBytes = (header: Uint8Array): Uint8Array => join(domain('envelope'), partOf(header))

export const leafOf = (header: Uint8Array): Uint8Array => sha256(Uint8Array.of(0), signedBytes(header))

/** A frame in the order of the text: decode, key, signature or batch, payload hash (unless the payload is `apart`), hops. */
export function verifyFrame(
  frame: RawFrame,
  arrival: Arrival,
  apart: (header: Header) => boolean = () => false,
): Authentic[] {
  const envelopes = frame.tag === 2 ? frame.envelopes : [frame.parts]
  const raw = frame.tag === 2 ? [] : frame.hops
  const headers = envelopes.map(({ header }) => readHeader(header))
  const leaves = envelopes.map(({ header }) => leafOf(header))
  const keys = headers.map((header) => keyOfSender(header, raw.length > 0, arrival))
  const [key] = keys
  if (key === undefined || keys.some((other) => other.fingerprint !== key.fingerprint)) {
    throw new Refused('sender', 'one batch has one signer')
  }
  checkSignature(frame, leaves, key)
  return headers.map((header, index) => {
    const { payload } = envelopes[index] as Parts
    const leaf = leaves[index] as Uint8Array
    const bound = header.payload_size === payload.length && header.payload_sha256 === hex(sha256(payload))
    if (!bound && !apart(header)) {
      throw new Refused('binding', 'not the payload of this header')
    }
    return { header, payload, leaf: hex(leaf), hops: readHops(raw, header, leaf, arrival) }
  })
}

export const verifyBytes = (bytes: Uint8Array, arrival: Arrival): Authentic[] => verifyFrame(readFrame(bytes), arrival)

export function readPayload({ header, payload }: Authentic): Json {
  return header.content_type === 'application/msgpack' ? parseMsgpack(payload) : parseJson(payload, 'payload')
}

/** What nobody forwarded was said by the neighbour, unless it is an answer. */
function keyOfSender(header: Header, forwarded: boolean, arrival: Arrival): VerifyingKey {
  const { agent_id, key: named } = header.sender as JsonMap
  const direct = !forwarded && !isAnswer(header)
  if (direct && arrival.neighbour !== undefined && agent_id !== arrival.neighbour) {
    throw new Refused('sender', 'not said by the neighbour, and nobody forwarded it')
  }
  const key = arrival.keyOf(agent_id as string)
  if (key === undefined) throw new Refused('stranger', 'an unknown sender')
  if (key.fingerprint !== named) throw new Refused('sender', 'a key that does not speak for the sender')
  return key
}

function checkSignature(frame: RawFrame, leaves: Uint8Array[], key: VerifyingKey): void {
  const [leaf] = leaves as [Uint8Array]
  if (frame.tag === 1) {
    if (!proves(key, leaf, frame.proof)) throw new Refused('proof', 'does not lead to a signed root')
    return
  }
  const signed =
    frame.tag === 0
      ? key.verifies(signedBytes(frame.parts.header), frame.signature)
      : coversAll(key, leaves, frame.signature)
  if (!signed) throw new Refused('signature', 'not signed by its sender')
}
