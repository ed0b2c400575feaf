import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  concat,
  decodeFrame,
  encodeBatch,
  encodeProven,
  encodeSingle,
  type Frame,
  LIMITS,
  MAX_FRAME,
  part,
  proofOf,
  Reader,
  readUvarint,
  toHex,
  uvarintLength,
  writeUvarint,
} from '../../src/index.ts'
import { hash, RUNS, UNTIL_NOTICED, verdictOf } from './support.ts'

const bytes = (maxLength: number, minLength = 0) => fc.uint8Array({ minLength, maxLength })
const signature = hash.map((half) => concat([half, half]))
const parts = fc.record({ header: bytes(300), payload: bytes(600) })
const hops = fc.array(fc.record({ body: bytes(200), signature }), { maxLength: 7 })
const proof = fc
  .tuple(fc.array(hash, { minLength: 1, maxLength: 16 }), fc.nat(15), signature)
  .map(([leaves, index, own]) => proofOf(leaves, index % leaves.length, own))

const frames: fc.Arbitrary<Frame> = fc.oneof(
  fc.tuple(parts, signature, hops).map(([one, own, chain]): Frame => ({ tag: 0, ...one, signature: own, hops: chain })),
  fc.tuple(parts, proof, hops).map(([one, own, chain]): Frame => ({ tag: 1, ...one, proof: own, hops: chain })),
  fc
    .tuple(fc.array(parts, { minLength: 1, maxLength: 16 }), signature)
    .map(([envelopes, own]): Frame => ({ tag: 2, signature: own, envelopes })),
)

function encode(frame: Frame): Uint8Array {
  if (frame.tag === 2) return encodeBatch(frame)
  return frame.tag === 0 ? encodeSingle(frame) : encodeProven(frame)
}

function bodyOf(whole: Uint8Array): Uint8Array {
  const reader = new Reader(whole)
  const body = reader.part(MAX_FRAME, 'the frame')
  reader.end('the frame')
  return body
}

/** With bytes as hex, so that two frames can be compared whatever class their bytes are of. */
function shown(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return toHex(value as Uint8Array)
  if (Array.isArray(value)) return value.map(shown)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shown(one)]))
}

type Decode = typeof decodeFrame

const REFUSALS = ['MALFORMED', 'LIMIT_EXCEEDED', 'UNKNOWN_TAG', 'BAD_PROOF']

/** Whole or not at all: no part of a frame is a frame, and nothing may follow it. */
const whole = (decode: Decode) =>
  fc.property(frames, fc.nat(), bytes(40, 1), (frame, at, more) => {
    const body = bodyOf(encode(frame))
    expect(REFUSALS).toContain(verdictOf(() => decode(body.subarray(0, at % body.length))))
    expect(REFUSALS).toContain(verdictOf(() => decode(concat([body, more]))))
  })

describe('a frame', () => {
  it('comes back as it was sent', () => {
    fc.assert(
      fc.property(frames, (frame) => {
        const sent = encode(frame)
        const read = decodeFrame(bodyOf(sent))
        expect(shown(read)).toEqual(shown(frame))
        expect(toHex(encode(read))).toBe(toHex(sent))
      }),
      RUNS,
    )
  })

  it('is read whole or not at all', () => {
    fc.assert(whole(decodeFrame), RUNS)
  })

  it('has one spelling: whatever is accepted encodes to the same bytes', () => {
    fc.assert(
      fc.property(frames, fc.nat(), fc.nat(255), (frame, at, byte) => {
        const body = Uint8Array.from(bodyOf(encode(frame)))
        body[at % body.length] = byte
        const verdict = verdictOf(() => decodeFrame(body))
        if (verdict === 'accepted') expect(toHex(encode(decodeFrame(body)))).toBe(toHex(part(body)))
        else expect(REFUSALS).toContain(verdict)
      }),
      RUNS,
    )
  })

  it('may be any bytes: the answer is a frame or a refusal, never a mistake', () => {
    fc.assert(
      fc.property(bytes(300), fc.nat(3), (body, tag) => {
        if (body.length > 0) body[0] = tag
        expect(['accepted', ...REFUSALS]).toContain(verdictOf(() => decodeFrame(body)))
      }),
      RUNS,
    )
  })

  it.each([
    ['a header of 4,096 bytes', LIMITS.header, 0, 'accepted'],
    ['a header of 4,097 bytes', LIMITS.header + 1, 0, 'LIMIT_EXCEEDED'],
    ['1 MiB together', 1000, LIMITS.envelope - 1000, 'accepted'],
    ['1 MiB and a byte together', 1000, LIMITS.envelope - 999, 'LIMIT_EXCEEDED'],
  ])('is held to its limits: %s', (_, header, payload, verdict) => {
    const frame = {
      header: new Uint8Array(header),
      payload: new Uint8Array(payload),
      signature: new Uint8Array(64),
      hops: [],
    }
    expect(verdictOf(() => decodeFrame(bodyOf(encodeSingle(frame))))).toBe(verdict)
  })
})

describe('a length', () => {
  it('comes back as it was written, in its shortest spelling only', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 35 - 1 }), bytes(5), (value, after) => {
        const length = uvarintLength(value)
        const out = new Uint8Array(length + after.length)
        expect(writeUvarint(out, 0, value)).toBe(length)
        out.set(after, length)
        expect(readUvarint(out, 0)).toEqual({ value, end: length })
        expect(readUvarint(out.subarray(0, length - 1), 0)).toBe(undefined)
        const longer = Uint8Array.of(...out.subarray(0, length), 0)
        longer[length - 1] = (longer[length - 1] as number) | 0x80
        expect(verdictOf(() => readUvarint(longer, 0))).toBe(length === 5 ? 'LIMIT_EXCEEDED' : 'MALFORMED')
      }),
      RUNS,
    )
  })
})

describe('the checks above', () => {
  it('notice a decoder that lets bytes be left over', () => {
    const lax: Decode = (body) => {
      for (let length = body.length; length > 0; length--) {
        if (verdictOf(() => decodeFrame(body.subarray(0, length))) === 'accepted')
          return decodeFrame(body.subarray(0, length))
      }
      return decodeFrame(body)
    }
    expect(() => fc.assert(whole(lax), UNTIL_NOTICED)).toThrow('Property failed')
  })
})
