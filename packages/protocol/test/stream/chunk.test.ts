import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  CHUNK_HEAD,
  chunkChain,
  decodeChunk,
  encodeAbort,
  encodeData,
  encodeEnd,
  encodePause,
  encodeResume,
  isHermesError,
  judgeChunk,
  LIMITS,
  MAX_CHUNK_BODY,
  Reader,
  toHex,
} from '../../src/index.ts'

const data = fc.record({
  index: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 2 ** 31 - 1 })),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 400 }),
})

const body = (chunk: Uint8Array) => new Reader(chunk).part(MAX_CHUNK_BODY, 'a chunk')

describe('a chunk', () => {
  it('comes out as it went in, and its head tells how long it is', () => {
    fc.assert(
      fc.property(data, ({ index, bytes }) => {
        const sent = encodeData(index, bytes)
        expect(judgeChunk(sent.subarray(0, CHUNK_HEAD))).toEqual({ whole: sent.length, steers: false })
        expect(decodeChunk(body(sent))).toEqual({ kind: 'data', index, bytes: Buffer.from(bytes) })
      }),
    )
  })

  it('has up to 64 KiB of data, and no more', () => {
    expect(decodeChunk(body(encodeData(1, new Uint8Array(LIMITS.chunk))))).toMatchObject({ kind: 'data' })
    expect(() => encodeData(1, new Uint8Array(LIMITS.chunk + 1))).toThrow(
      expect.objectContaining({ code: 'LIMIT_EXCEEDED' }),
    )
  })

  it('steers or tells: pause, resume and abort may be taken before what waits', () => {
    const steers = (chunk: Uint8Array) => judgeChunk(chunk)?.steers
    expect([encodePause(), encodeResume(), encodeAbort('TIMEOUT')].map(steers)).toEqual([true, true, true])
    expect([encodeData(1, Uint8Array.of(1)), encodeEnd(Uint8Array.of(1, 0))].map(steers)).toEqual([false, false])
  })

  it('is judged or refused whatever the bytes are, and by its head no later than by the whole', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const judge = (run: () => unknown) => {
          try {
            run()
            return 'accepted'
          } catch (error) {
            if (!isHermesError(error)) throw error
            return 'refused'
          }
        }
        const head = judge(() => judgeChunk(bytes.subarray(0, CHUNK_HEAD)))
        const whole = judge(() => decodeChunk(body(bytes)))
        if (head === 'refused') expect(whole).toBe('refused')
      }),
    )
  })
})

describe('the running hash', () => {
  const leaf = 'c0'.repeat(32)

  it('is that of the text: each chunk after the hash before it', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 8 }), (pieces) => {
        const chain = chunkChain(leaf)
        let hash = Buffer.from(leaf, 'hex')
        for (const [at, piece] of pieces.entries()) {
          const sent = encodeData(at + 1, piece)
          chain.add(at + 1, sent)
          hash = createHash('sha256').update(hash).update(sent).digest()
        }
        expect(chain.count).toBe(pieces.length)
        expect(chain.hash).toBe(toHex(hash))
        chain.check({ count: pieces.length, running_hash: toHex(hash) })
      }),
    )
  })

  it('takes no index but the next one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 9 }), (count, index) => {
        fc.pre(index !== count + 1)
        const chain = chunkChain(leaf)
        for (let at = 1; at <= count; at++) chain.add(at, Uint8Array.of(at))
        const before = chain.hash
        expect(() => chain.add(index, Uint8Array.of(0))).toThrow(expect.objectContaining({ code: 'STREAM_BROKEN' }))
        expect(chain.hash).toBe(before)
      }),
    )
  })
})
