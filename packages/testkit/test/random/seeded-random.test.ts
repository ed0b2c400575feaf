import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../src/random/seeded-random.ts'
import { xoshiro128starstar } from '../../src/random/xoshiro.ts'

describe('xoshiro128**', () => {
  it('gives the numbers of the reference implementation, version 1.1', () => {
    const next = xoshiro128starstar([1, 2, 3, 4])
    expect(Array.from({ length: 10 }, next)).toEqual([
      11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849, 3729100597, 4258142804,
    ])
  })
})

describe('seededRandom', () => {
  const draw = (seed: number | string) => Array.from({ length: 8 }, seededRandom(seed).next.bind(seededRandom(seed)))

  it('gives the same for the same seed and something else for another', () => {
    expect(draw(7)).toEqual(draw(7))
    expect(draw(7)).toEqual(draw('7'))
    expect(draw(7)).not.toEqual(draw(8))
  })

  it('forks by label alone: not by what was drawn, not by where a label is cut', () => {
    const used = seededRandom(1)
    for (let i = 0; i < 100; i++) used.next()
    expect(used.fork('x').next()).toBe(seededRandom(1).fork('x').next())
    expect(seededRandom(1).fork('x').next()).not.toBe(seededRandom(1).fork('y').next())
    expect(seededRandom(1).fork('a').fork('b').next()).not.toBe(seededRandom(1).fork('a/1:b').next())
    expect(seededRandom(1).fork('a').next()).not.toBe(seededRandom(1).next())
  })

  it('fills bytes of any length, evenly', () => {
    const random = seededRandom(3)
    for (const length of [0, 1, 3, 4, 5, 32]) expect(random.bytes(length)).toHaveLength(length)
    const counts = new Array<number>(256).fill(0)
    for (const byte of random.bytes(256_000)) counts[byte] = (counts[byte] ?? 0) + 1
    const chiSquared = counts.reduce((sum, count) => sum + (count - 1_000) ** 2 / 1_000, 0)
    // 255 degrees of freedom: mean 255, standard deviation 22.6.
    expect(chiSquared).toBeGreaterThan(170)
    expect(chiSquared).toBeLessThan(340)
  })

  it('keeps to its ranges', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: -1_000, max: 1_000 }), fc.nat(1_000), (seed, min, span) => {
        const random = seededRandom(seed)
        const whole = random.int(min, min + span)
        expect(Number.isInteger(whole) && whole >= min && whole <= min + span).toBe(true)
        const number = random.between(min, min + span + 1)
        expect(number >= min && number < min + span + 1).toBe(true)
        const unit = random.next()
        expect(unit >= 0 && unit < 1).toBe(true)
        expect([random.chance(0), random.chance(1)]).toEqual([false, true])
      }),
      { numRuns: 300 },
    )
  })

  it('reaches both ends of a range, and every item', () => {
    const random = seededRandom(5)
    const seen = new Set(Array.from({ length: 200 }, () => random.int(-1, 2)))
    expect([...seen].sort((a, b) => a - b)).toEqual([-1, 0, 1, 2])
    expect(new Set(Array.from({ length: 100 }, () => random.pick(['a', 'b', 'c']))).size).toBe(3)
    expect(() => random.pick([])).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })

  it('shuffles without losing anything or touching the original', () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { maxLength: 50 }), (items) => {
        const before = [...items]
        const numerically = (a: number, b: number) => a - b
        expect(seededRandom(9).shuffle(items).sort(numerically)).toEqual([...items].sort(numerically))
        expect(items).toEqual(before)
      }),
      { numRuns: 100 },
    )
    const firsts = Array.from({ length: 300 }, (_, seed) => seededRandom(seed).shuffle([1, 2, 3])[0])
    for (const item of [1, 2, 3]) expect(firsts.filter((first) => first === item).length).toBeGreaterThan(60)
  })
})
