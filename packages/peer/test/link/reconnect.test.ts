import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createReconnector, type Reconnector } from '../../src/link/reconnect.ts'

interface Wait {
  name: string
  inMs: number
  failures: number
}

function reconnecting(options: { reachable?: (name: string) => boolean; wanted?: boolean; seed?: string } = {}) {
  const clock = manualClock()
  const waits: Wait[] = []
  const attempts: { name: string; at: number }[] = []
  const reconnector: Reconnector = createReconnector({
    clock,
    random: seededRandom(options.seed ?? 'reconnect'),
    tunables: DEFAULTS,
    async attempt(name) {
      attempts.push({ name, at: clock.monotonic() })
      if (!options.reachable?.(name)) throw new Error('unreachable')
      // As the runtime does: the link is up before the dialler hears of it.
      reconnector.end(name)
    },
    wanted: () => options.wanted ?? false,
    waiting: (name, inMs, failures) => waits.push({ name, inMs, failures }),
  })
  return { clock, reconnector, waits, attempts }
}

/** Longest wait allowed after so many failures. */
const bound = (failures: number, cap: number) => Math.min(cap, DEFAULTS.reconnectMs * 2 ** failures)

describe('F-16 everyone reconnects at once', () => {
  it('50 names that lose their link in the same instant are dialled spread out', async () => {
    const { clock, reconnector, attempts } = reconnecting({ reachable: () => true })
    for (let i = 0; i < 50; i++) reconnector.begin(`agent${i}`, false)
    await clock.timeline.advance(DEFAULTS.reconnectMs)
    expect(attempts).toHaveLength(50)
    const tenths = new Array(10).fill(0)
    for (const { at } of attempts) tenths[Math.min(9, Math.floor((at / DEFAULTS.reconnectMs) * 10))]++
    // Evenly drawn, a tenth holds five; none may hold the crowd, and few may be empty.
    expect(Math.max(...tenths)).toBeLessThanOrEqual(15)
    expect(tenths.filter((count) => count > 0).length).toBeGreaterThanOrEqual(7)
  })

  it('with another seed they are spread in another way', async () => {
    const times = async (seed: string) => {
      const { clock, reconnector, attempts } = reconnecting({ reachable: () => true, seed })
      for (let i = 0; i < 10; i++) reconnector.begin(`agent${i}`, false)
      await clock.timeline.advance('1s')
      return attempts.map(({ at }) => at)
    }
    expect(await times('one')).toEqual(await times('one'))
    expect(await times('one')).not.toEqual(await times('two'))
  })

  it.each([
    ['nothing waits for it', false, DEFAULTS.reconnectIdleCapMs],
    ['something waits for it', true, DEFAULTS.reconnectCapMs],
  ])('attempts at a dead peer fall off up to the cap and never stop, when %s', async (_, wanted, cap) => {
    const { clock, reconnector, waits, attempts } = reconnecting({ wanted })
    reconnector.begin('dead', false)
    await clock.timeline.advance('60m')
    for (const { inMs, failures } of waits) {
      expect(inMs).toBeGreaterThanOrEqual(1)
      expect(inMs).toBeLessThanOrEqual(bound(failures, cap))
    }
    expect(waits.map(({ failures }) => failures)).toEqual(waits.map((_, index) => index))
    // Full jitter: also the capped waits differ.
    const capped = waits.filter(({ failures }) => bound(failures, cap) === cap)
    expect(new Set(capped.map(({ inMs }) => inMs)).size).toBeGreaterThan(capped.length / 2)
    // Never stop: at least one in each span of the cap, to the end.
    const ats = attempts.map(({ at }) => at)
    for (const [index, at] of ats.entries())
      if (index > 0) expect(at - (ats[index - 1] as number)).toBeLessThanOrEqual(cap + 1)
    expect(60 * 60_000 - (ats.at(-1) as number)).toBeLessThanOrEqual(cap + 1)
    // Half of the cap is the mean of a full jitter.
    expect(attempts.length).toBeLessThan((3600_000 / (cap / 2)) * 1.5)
  })

  it('a flapping peer is dialled ever more seldom: success alone does not reset the waits', async () => {
    const { clock, reconnector, waits } = reconnecting({ reachable: () => true })
    for (let flap = 0; flap < 8; flap++) {
      reconnector.begin('flapping', false)
      await clock.timeline.advance('2m')
    }
    expect(waits.map(({ failures }) => failures)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  })

  it('a link that stood for long resets the waits', async () => {
    const { clock, reconnector, waits } = reconnecting({ reachable: () => true })
    for (const stable of [false, false, true, false]) {
      reconnector.begin('a', stable)
      await clock.timeline.advance('2m')
    }
    expect(waits.map(({ failures }) => failures)).toEqual([0, 1, 0, 1])
  })
})

describe('the reconnector', () => {
  it('has one timer per name', async () => {
    const { clock, reconnector, attempts } = reconnecting()
    for (let i = 0; i < 5; i++) reconnector.begin('a', false)
    expect(clock.timeline.pending).toBe(1)
    await clock.timeline.advance(DEFAULTS.reconnectMs)
    expect(attempts.length).toBeLessThanOrEqual(2)
  })

  it('stops for a name that is linked again, or that nobody wants', async () => {
    const { clock, reconnector, attempts } = reconnecting()
    reconnector.begin('a', false)
    reconnector.end('a')
    await clock.timeline.advance('10m')
    expect(attempts).toEqual([])
    expect(clock.timeline.pending).toBe(0)
  })

  it('stops for good', async () => {
    const { clock, reconnector, attempts } = reconnecting()
    reconnector.begin('a', false)
    reconnector.stop()
    reconnector.begin('b', false)
    await clock.timeline.advance('10m')
    expect(attempts).toEqual([])
    expect(clock.timeline.pending).toBe(0)
  })

  it('has at most 300 names under way', () => {
    const { clock, reconnector } = reconnecting()
    for (let i = 0; i < 400; i++) reconnector.begin(`agent${i}`, false)
    expect(clock.timeline.pending).toBe(300)
  })
})
