import { HermesError, part } from '@hermes-peer/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteQueue } from '../../src/link/byte-queue.ts'

const LIMIT = 1000
const filled = (length: number, seed = 0) => Uint8Array.from({ length }, (_, i) => (i * 7 + seed) & 0xff)

/** Bytes cut at any places: `cuts` are the lengths of the pieces, over and over. */
function segments(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = cuts[i % cuts.length] as number
    pieces.push(bytes.slice(at, at + length))
    at += length
  }
  return pieces
}

describe('a byte queue', () => {
  it('cuts the same parts out of any segmentation', () => {
    const parts = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 })
    const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 10 })
    fc.assert(
      fc.property(parts, cuts, fc.boolean(), (sent, lengths, eager) => {
        const queue = new ByteQueue()
        const got: Uint8Array[] = []
        const drain = () => {
          for (let next = queue.part(LIMIT); next !== undefined; next = queue.part(LIMIT))
            got.push(Uint8Array.from(next))
        }
        for (const piece of segments(Buffer.concat(sent.map((one) => part(one))), lengths)) {
          queue.push(piece)
          if (eager) drain()
        }
        drain()
        expect(got.map((one) => [...one])).toEqual(sent.map((one) => [...one]))
        expect(queue.size).toBe(0)
        expect(queue.part(LIMIT)).toBeUndefined()
      }),
      { numRuns: 1000 },
    )
  })

  it('gives parts and plain bytes in turn, as the handshake does', () => {
    const turns = fc.array(
      fc.tuple(fc.uint8Array({ maxLength: 100 }), fc.uint8Array({ minLength: 64, maxLength: 64 })),
      { minLength: 1, maxLength: 5 },
    )
    fc.assert(
      fc.property(turns, fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 6 }), (sent, lengths) => {
        const queue = new ByteQueue()
        const got: number[][][] = []
        let body: Uint8Array | undefined
        const drain = () => {
          for (;;) {
            body ??= queue.part(LIMIT)?.slice()
            const signature = body && queue.take(64)
            if (!body || !signature) return
            got.push([[...body], [...signature]])
            body = undefined
          }
        }
        for (const piece of segments(
          Buffer.concat(sent.flatMap(([one, signature]) => [part(one), signature])),
          lengths,
        )) {
          queue.push(piece)
          drain()
        }
        expect(got).toEqual(sent.map(([one, signature]) => [[...one], [...signature]]))
      }),
      { numRuns: 300 },
    )
  })

  it('never keeps more than the limit and one chunk, whoever sends what', () => {
    const chunk = 64
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: chunk }), { maxLength: 60 }), (chunks) => {
        const queue = new ByteQueue()
        try {
          for (const bytes of chunks) {
            queue.push(bytes)
            while (queue.part(LIMIT) !== undefined);
            expect(queue.size).toBeLessThanOrEqual(LIMIT + 5 + chunk)
          }
        } catch (error) {
          expect(['LIMIT_EXCEEDED', 'MALFORMED']).toContain((error as HermesError).code)
        }
      }),
      { numRuns: 500 },
    )
  })

  const codeOf = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      return error instanceof HermesError ? error : undefined
    }
    return undefined
  }

  it('F-06 compares a length with the limit before its bytes are waited for', () => {
    const queue = new ByteQueue()
    queue.push(part(new Uint8Array(LIMIT + 1)).subarray(0, 2))
    const error = codeOf(() => queue.part(LIMIT))
    expect(error?.code).toBe('LIMIT_EXCEEDED')
    expect(error?.details).toEqual({ size: LIMIT + 1, limit: LIMIT })
  })

  it('F-06 takes a part of exactly the limit', () => {
    const queue = new ByteQueue()
    queue.push(part(filled(LIMIT)))
    expect(queue.part(LIMIT)).toEqual(filled(LIMIT))
  })

  it.each([
    ['64 continuation bytes', new Uint8Array(64).fill(0xff)],
    ['a length of 2^40', Uint8Array.from([0x80, 0x80, 0x80, 0x80, 0x80, 0x40])],
    ['a length that is not written in the shortest form', Uint8Array.from([0x85, 0x00, 1, 2, 3, 4, 5])],
  ])('F-06 refuses %s at once', (_, bytes) => {
    const queue = new ByteQueue()
    queue.push(bytes)
    expect(['LIMIT_EXCEEDED', 'MALFORMED']).toContain(codeOf(() => queue.part(LIMIT))?.code)
  })

  it('F-06 refuses an endless length however it is cut', () => {
    const queue = new ByteQueue()
    const error = codeOf(() => {
      for (let i = 0; i < 64; i++) {
        queue.push(Uint8Array.of(0xff))
        queue.part(LIMIT)
      }
    })
    expect(['LIMIT_EXCEEDED', 'MALFORMED']).toContain(error?.code)
  })

  it('gives an empty part, and waits for nothing with nothing', () => {
    const queue = new ByteQueue()
    expect(queue.part(LIMIT)).toBeUndefined()
    expect(queue.take(1)).toBeUndefined()
    queue.push(new Uint8Array(0))
    expect(queue.size).toBe(0)
    queue.push(part(new Uint8Array(0)))
    expect(queue.part(LIMIT)).toEqual(new Uint8Array(0))
  })
})
