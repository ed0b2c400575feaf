import { seededRandom } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import type { Measured } from '../../src/routing/measure.ts'
import { order, type Rated, type Scored, scoreOf } from '../../src/routing/rank.ts'
import { scored } from './support.ts'

const tunables = DEFAULTS
const proven = (more: Partial<Measured> = {}): Measured => ({ calls: 100, success: 1, p50Ms: 0, inFlight: 0, ...more })
const scoreFor = (one: Rated) => scoreOf(one, tunables)
const rated = (more: Partial<Rated> = {}) => ({
  load: 0,
  measured: proven(),
  reportedSuccess: 1,
  affine: false,
  ...more,
})

describe('the score, by hand: 0.4·(1 − load/100) + 0.3·(1 − min(p50 / 1 s, 1)) + 0.2·success + 0.1·affinity', () => {
  it.each([
    ['idle, at once, flawless, affine', { affine: true }, 1],
    ['idle, at once, flawless', {}, 0.9],
    ['idle, at once, flawless, endorsed', { endorsedBy: ['auditor'] }, 1],
    ['endorsed by two', { endorsedBy: ['auditor', 'owner'] }, 1],
    // 0.4·0.88 + 0.3·0.916 + 0.2·0.996
    ['load 12, p50 84 ms, 99.6 %', { load: 12, measured: proven({ p50Ms: 84, success: 0.996 }) }, 0.826],
    // 0.4·0.5 + 0.3·0.5 + 0.2·0.5
    ['half of everything', { load: 50, measured: proven({ p50Ms: 500, success: 0.5 }) }, 0.45],
    ['full load', { load: 100 }, 0.5],
    ['p50 of 1 s', { measured: proven({ p50Ms: 1000 }) }, 0.6],
    ['p50 of 30 s is no worse than 1 s', { measured: proven({ p50Ms: 30_000 }) }, 0.6],
    ['always failing', { measured: proven({ success: 0 }) }, 0.7],
    ['the worst', { load: 100, measured: proven({ p50Ms: 5000, success: 0 }) }, 0],
    ['the worst, affine', { load: 100, measured: proven({ p50Ms: 5000, success: 0 }), affine: true }, 0.1],
  ])('%s', (_, more, expected) => {
    expect(scoreFor(rated(more))).toBeCloseTo(expected, 10)
  })

  it('takes success from what was measured here once enough was', () => {
    expect(scoreFor(rated({ measured: proven({ success: 0.5 }), reportedSuccess: 1 }))).toBeCloseTo(0.8, 10)
  })

  it('blends it with what the peer reports while little has been measured', () => {
    const nothing = { calls: 0, success: 1, p50Ms: undefined, inFlight: 0 }
    const all = scoreFor(rated({ measured: nothing, reportedSuccess: 1 }))
    const none = scoreFor(rated({ measured: nothing, reportedSuccess: 0 }))
    expect(all - none).toBeCloseTo(0.2, 10)
    const some = (calls: number) => scoreFor(rated({ measured: proven({ calls, success: 0 }), reportedSuccess: 1 }))
    expect(some(1)).toBeGreaterThan(some(3))
    expect(some(3)).toBeGreaterThan(some(100))
  })

  it('gives a newcomer no crown: a proven agent that is fast, idle and flawless scores higher', () => {
    const newcomer = { calls: 0, success: 1, p50Ms: undefined, inFlight: 0 }
    expect(scoreFor(rated({ measured: newcomer }))).toBeLessThan(scoreFor(rated({ measured: proven({ p50Ms: 100 }) })))
  })

  it('does not believe a report of more than everything', () => {
    const newcomer = { calls: 0, success: 1, p50Ms: undefined, inFlight: 0 }
    expect(scoreFor(rated({ measured: newcomer, reportedSuccess: 50 }))).toBe(scoreFor(rated({ measured: newcomer })))
  })

  it('is between 0 and 1, and never better for more load, more latency or less success', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(
        fc.nat(100),
        fc.nat(100),
        fc.nat(5000),
        fc.nat(5000),
        share,
        share,
        fc.nat(300),
        fc.boolean(),
        (l1, l2, p1, p2, s1, s2, calls, affine) => {
          const score = (load: number, p50Ms: number, success: number) =>
            scoreFor({ load, measured: { calls, p50Ms, success, inFlight: 0 }, reportedSuccess: success, affine })
          const better = score(Math.min(l1, l2), Math.min(p1, p2), Math.max(s1, s2))
          const worse = score(Math.max(l1, l2), Math.max(p1, p2), Math.min(s1, s2))
          expect(better).toBeGreaterThanOrEqual(worse - 1e-12)
          expect(worse).toBeGreaterThanOrEqual(0)
          expect(better).toBeLessThanOrEqual(1 + 1e-12)
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe('the order', () => {
  const names = (list: readonly Scored[], seed: number | string = 1) =>
    order(list, { random: seededRandom(seed), tunables }).map(({ facts }) => facts.agentId)
  /** How often each comes first. */
  const firsts = (list: readonly Scored[], runs = 2000) => {
    const random = seededRandom('firsts')
    const counts: Record<string, number> = {}
    for (let i = 0; i < runs; i++) {
      const first = order(list, { random, tunables })[0]?.facts.agentId as string
      counts[first] = (counts[first] ?? 0) + 1 / runs
    }
    return counts
  }

  it('is by score, whatever the order they come in', () => {
    expect(names([scored('c', 0.3), scored('a', 0.9), scored('b', 0.6)])).toEqual(['a', 'b', 'c'])
  })

  it('of nobody and of one is what it is', () => {
    expect(names([])).toEqual([])
    expect(names([scored('a', 0.1)])).toEqual(['a'])
  })

  it('keeps everyone exactly once', () => {
    const scores = fc.array(
      fc.record({ score: fc.double({ min: 0, max: 1, noNaN: true }), measured: fc.nat(10), inFlight: fc.nat(5) }),
      { maxLength: 20 },
    )
    fc.assert(
      fc.property(scores, fc.nat(), (list, seed) => {
        const all = list.map(({ score, ...more }, index) => scored(`a${index}`, score, more))
        expect(names(all, seed).sort()).toEqual(all.map(({ facts }) => facts.agentId).sort())
      }),
      { numRuns: 300 },
    )
  })

  it('among near-equals spreads: callers with the same stale load report do not all run to one', () => {
    const counts = firsts([scored('a', 0.8), scored('b', 0.79), scored('c', 0.78)])
    for (const name of ['a', 'b', 'c']) expect(counts[name]).toBeGreaterThan(0.1)
  })

  it('of two drawn takes the one with less in flight from here', () => {
    const counts = firsts([scored('busy', 0.8, { inFlight: 9 }), scored('free', 0.79, { inFlight: 1 })])
    // Both draws must hit the busy one for it to come first.
    expect(counts.busy).toBeLessThan(0.3)
    expect(counts.free).toBeGreaterThan(0.7)
  })

  it('does not draw who is clearly worse', () => {
    expect(firsts([scored('a', 0.8), scored('b', 0.7)])).toEqual({ a: expect.closeTo(1, 5) })
  })

  it('gives a newcomer a small share of the traffic', () => {
    const { newcomer = 0 } = firsts([scored('proven', 0.8), scored('newcomer', 0.4, { measured: 0 })])
    expect(newcomer).toBeGreaterThan(0.02)
    expect(newcomer).toBeLessThan(0.1)
  })

  it('puts who has no free place behind who has, whatever the scores', () => {
    const list = [
      scored('full', 0.9, { places: 1, inFlight: 1 }),
      scored('free', 0.2),
      scored('full too', 0.5, { places: 1, inFlight: 1 }),
    ]
    for (let seed = 0; seed < 20; seed++) expect(names(list, seed)[0]).toBe('free')
    expect(names([scored('b', 0.5, { places: 1, inFlight: 1 }), scored('a', 0.9, { places: 1, inFlight: 1 })])).toEqual(
      ['a', 'b'],
    )
  })

  it('of equals takes the cheaper one more often', () => {
    const { cheap = 0 } = firsts([scored('dear', 0.5, { cost: 5 }), scored('cheap', 0.5, { cost: 1 })])
    expect(cheap).toBeGreaterThan(0.65)
  })

  it('does not let a newcomer have more than its share, however well it looks', () => {
    const { newcomer = 0 } = firsts([scored('proven', 0.8), scored('newcomer', 0.81, { measured: 9 })])
    expect(newcomer).toBeGreaterThan(0.02)
    expect(newcomer).toBeLessThan(0.1)
    const { proven = 0 } = firsts([scored('old', 0.8), scored('proven', 0.81, { measured: 10 })])
    expect(proven).toBeGreaterThan(0.4)
    // Not the second choice either, as long as somebody proven is there.
    expect(names([scored('a', 0.8), scored('newcomer', 0.9, { measured: 0 }), scored('b', 0.3)])).toEqual([
      'a',
      'b',
      'newcomer',
    ])
  })

  it('among near-equals draws by the number of places, and compares the share of them that is taken', () => {
    const idle = firsts([scored('small', 0.8, { places: 1 }), scored('large', 0.8, { places: 3 })])
    expect(idle.small).toBeCloseTo(0.25, 1)
    // 2 of 10 are less than 1 of 3, although they are more.
    const busy = firsts([
      scored('large', 0.8, { places: 10, inFlight: 2 }),
      scored('small', 0.8, { places: 3, inFlight: 1 }),
    ])
    expect(busy.large).toBeGreaterThan(0.9)
  })

  it('is by score when all are newcomers', () => {
    const counts = firsts([scored('a', 0.8, { measured: 0 }), scored('b', 0.5, { measured: 1 })])
    expect(counts).toEqual({ a: expect.closeTo(1, 5) })
  })
})
