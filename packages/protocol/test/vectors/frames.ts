import {
  type BatchFrame,
  concat,
  encodeBatch,
  encodeProven,
  encodeSingle,
  type ProvenFrame,
  part,
  type SignedHop,
  type SingleFrame,
  toHex,
  utf8,
} from '../../src/index.ts'
import type { Pieces, Vector } from './scene.ts'

// To cut a frame into its parts nobody looks inside them, so these are short and easy to see in a dump.
const HEADER = utf8('header')
const PAYLOAD = utf8('负载 🚚')
const SIGNATURE = new Uint8Array(64).fill(0x55)
const hop = (text: string): SignedHop => ({ body: utf8(text), signature: new Uint8Array(64).fill(0x66) })
const SIBLING = new Uint8Array(32).fill(0x77)
const proof = (index: number, count: number, siblings: number) =>
  concat([SIGNATURE, Uint8Array.of(index, count), ...Array.from({ length: siblings }, () => SIBLING)])

const hops = (list: readonly SignedHop[]) =>
  list.map(({ body, signature }) => ({ json: toHex(body), signature: toHex(signature) }))

function single(name: string, frame: Omit<SingleFrame, 'tag'>): Vector {
  const { header, payload, signature } = frame
  const shown = { header: toHex(header), payload: toHex(payload), signature: toHex(signature), hops: hops(frame.hops) }
  return { name, tag: 0, ...shown, bytes: toHex(encodeSingle(frame)) }
}

function proven(name: string, frame: Omit<ProvenFrame, 'tag'>): Vector {
  const { header, payload } = frame
  const shown = { header: toHex(header), payload: toHex(payload), proof: toHex(frame.proof), hops: hops(frame.hops) }
  return { name, tag: 1, ...shown, bytes: toHex(encodeProven(frame)) }
}

function batch(name: string, frame: Omit<BatchFrame, 'tag'>): Vector {
  const envelopes = frame.envelopes.map(({ header, payload }) => ({ header: toHex(header), payload: toHex(payload) }))
  return { name, tag: 2, signature: toHex(frame.signature), envelopes, bytes: toHex(encodeBatch(frame)) }
}

function accepted(): Vector[] {
  const parts = { header: HEADER, payload: PAYLOAD }
  const empty = { header: new Uint8Array(0), payload: new Uint8Array(0) }
  const long = { header: HEADER, payload: new Uint8Array(300).fill(0x78) }
  return [
    single('one envelope', { ...parts, signature: SIGNATURE, hops: [] }),
    single('one envelope with empty parts', { ...empty, signature: SIGNATURE, hops: [] }),
    single('a length of two bytes', { ...long, signature: SIGNATURE, hops: [] }),
    single('one hop', { ...parts, signature: SIGNATURE, hops: [hop('{"index":0}')] }),
    single('seven hops', { ...parts, signature: SIGNATURE, hops: Array.from({ length: 7 }, (_, i) => hop(`${i}`)) }),
    proven('a batch of one', { ...parts, proof: proof(0, 1, 0), hops: [] }),
    proven('the third of five', { ...parts, proof: proof(2, 5, 3), hops: [] }),
    proven('the last of five', { ...parts, proof: proof(4, 5, 1), hops: [] }),
    proven('the last of sixteen, with a hop', { ...parts, proof: proof(15, 16, 4), hops: [hop('{}')] }),
    batch('one envelope in a batch', { signature: SIGNATURE, envelopes: [parts] }),
    batch('sixteen envelopes in a batch', { signature: SIGNATURE, envelopes: Array.from({ length: 16 }, () => parts) }),
  ]
}

const hex = (...pieces: Uint8Array[]) => toHex(concat(pieces))
const byte = (...values: number[]) => Uint8Array.from(values)
const frame = (...pieces: Uint8Array[]) => toHex(part(concat(pieces)))
const PARTS = concat([part(HEADER), part(PAYLOAD)])

function refused(): Vector[] {
  const no = (name: string, code: string, bytes: Pieces): Vector => ({ name, bytes, code })
  const manyHops = (count: number, size: number): Pieces => {
    const body = { repeat: '78', times: size }
    const one = [hex(byte(0x80 | (size & 0x7f), size >> 7)), body, hex(SIGNATURE)] as const
    const each = 2 + size + 64
    const whole = concat([byte(0), PARTS, SIGNATURE, byte(count)])
    const length = whole.length + each * count
    return [hex(byte(0x80 | (length & 0x7f), length >> 7), whole), ...Array.from({ length: count }, () => one).flat()]
  }
  return [
    no('no bytes', 'MALFORMED', ''),
    no('an empty body', 'MALFORMED', '00'),
    no('a body that is cut off', 'MALFORMED', '05000168'),
    no('a byte behind the frame', 'MALFORMED', `${frame(byte(0), PARTS, SIGNATURE, byte(0))}00`),
    no('a length of more than 4 MiB', 'LIMIT_EXCEEDED', hex(byte(0x81, 0x80, 0x80, 0x02))),
    no('a length of six bytes', 'LIMIT_EXCEEDED', 'ffffffffff01'),
    no('a length with needless bytes', 'MALFORMED', `d600${frame(byte(0), PARTS, SIGNATURE, byte(0)).slice(2)}`),
    no('tag 3', 'UNKNOWN_TAG', frame(byte(3), PARTS, SIGNATURE, byte(0))),
    no('tag 255', 'UNKNOWN_TAG', frame(byte(255))),
    no('tag 0, only the tag', 'MALFORMED', frame(byte(0))),
    no('tag 0, header cut off', 'MALFORMED', frame(byte(0, 9), HEADER)),
    no('tag 0, no payload', 'MALFORMED', frame(byte(0), part(HEADER))),
    no('tag 0, 63 bytes of signature', 'MALFORMED', frame(byte(0), PARTS, SIGNATURE.subarray(1))),
    no('tag 0, no count of hops', 'MALFORMED', frame(byte(0), PARTS, SIGNATURE)),
    no('tag 0, a byte left over', 'MALFORMED', frame(byte(0), PARTS, SIGNATURE, byte(0, 0))),
    no(
      'tag 0, a header length with needless bytes',
      'MALFORMED',
      frame(byte(0, 0x86, 0), HEADER, part(PAYLOAD), SIGNATURE, byte(0)),
    ),
    no('tag 0, a count of hops with needless bytes', 'MALFORMED', frame(byte(0), PARTS, SIGNATURE, byte(0x80, 0))),
    no('tag 0, a header of 4,097 bytes', 'LIMIT_EXCEEDED', frame(byte(0, 0x81, 0x20))),
    no(
      'tag 0, a payload that passes 1 MiB with its header',
      'LIMIT_EXCEEDED',
      frame(byte(0), part(HEADER), byte(0xfb, 0xff, 0x3f)),
    ),
    no('tag 0, eight hops', 'LIMIT_EXCEEDED', frame(byte(0), PARTS, SIGNATURE, byte(8))),
    no('tag 0, a hop too few', 'MALFORMED', frame(byte(0), PARTS, SIGNATURE, byte(1))),
    no('tag 0, a hop without signature', 'MALFORMED', frame(byte(0), PARTS, SIGNATURE, byte(1), part(utf8('{}')))),
    no('tag 0, a hop of 2,049 bytes', 'LIMIT_EXCEEDED', frame(byte(0), PARTS, SIGNATURE, byte(1, 0x81, 0x10))),
    no('tag 0, hops of more than 8 KiB', 'LIMIT_EXCEEDED', manyHops(5, 1600)),
    no('tag 1, a proof cut off', 'MALFORMED', frame(byte(1), PARTS, proof(2, 5, 2))),
    no(
      'tag 1, a sibling too many, which reads as a count of 119 hops',
      'LIMIT_EXCEEDED',
      frame(byte(1), PARTS, proof(2, 5, 4), byte(0)),
    ),
    no('tag 1, count 0', 'BAD_PROOF', frame(byte(1), PARTS, proof(0, 0, 0), byte(0))),
    no('tag 1, count 17', 'BAD_PROOF', frame(byte(1), PARTS, proof(0, 17, 5), byte(0))),
    no('tag 1, an index beyond the count', 'BAD_PROOF', frame(byte(1), PARTS, proof(5, 5, 3), byte(0))),
    no('tag 1, no count of hops', 'MALFORMED', frame(byte(1), PARTS, proof(0, 1, 0))),
    no('tag 1, a byte left over', 'MALFORMED', frame(byte(1), PARTS, proof(0, 1, 0), byte(0, 0))),
    no('tag 2, count 0', 'MALFORMED', frame(byte(2, 0), SIGNATURE)),
    no('tag 2, count 17', 'MALFORMED', frame(byte(2, 17), SIGNATURE)),
    no('tag 2, an envelope too few', 'MALFORMED', frame(byte(2, 2), SIGNATURE, PARTS)),
    no('tag 2, an envelope too many', 'MALFORMED', frame(byte(2, 1), SIGNATURE, PARTS, PARTS)),
    no('tag 2, with hops', 'MALFORMED', frame(byte(2, 1), SIGNATURE, PARTS, byte(0))),
  ]
}

export function frameVectors(): Vector {
  return {
    about:
      'Frames, cut into their parts; what the parts hold is of no concern here (they are placeholders). All hex. `bytes` begins with the length of the frame. Bytes may be given in pieces, some of them repeated.',
    accepted: accepted(),
    refused: refused(),
  }
}
