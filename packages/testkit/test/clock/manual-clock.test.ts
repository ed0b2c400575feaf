import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTimeline, manualClock } from '../../src/clock/timeline.ts'

describe('a manual clock', () => {
  it('shows the same moment to all machines, each with its own wall', async () => {
    const timeline = createTimeline({ start: 1_000_000 })
    const early = timeline.clock({ skewMs: -240_000 })
    const late = timeline.clock({ skewMs: 240_000 })
    await timeline.advance('1.5s')
    expect([early.now(), late.now()]).toEqual([761_500, 1_241_500])
    expect(early.monotonic()).toBe(late.monotonic())
  })

  it('gives whole numbers on the wall and counts from its own beginning', async () => {
    const timeline = createTimeline({ start: 1_000 })
    await timeline.advance(0.75)
    const clock = timeline.clock()
    await timeline.advance(10.5)
    expect(clock.now()).toBe(1_011)
    expect(clock.monotonic()).toBe(10.5)
  })

  it('jumps on the wall without a timer or the monotonic time noticing (F-25)', async () => {
    const clock = manualClock({ start: 5_000_000, skewMs: 7 })
    let fired = 0
    clock.after(1_000, () => fired++)
    clock.jumpWall(3_600_000)
    expect([clock.now(), clock.monotonic()]).toEqual([8_600_007, 0])
    await clock.timeline.advance(999)
    expect(fired).toBe(0)
    clock.jumpWall(-7_200_000)
    await clock.timeline.advance(1)
    expect([fired, clock.now(), clock.monotonic()]).toEqual([1, 1_401_007, 1_000])
  })

  it('never fires early, whatever fractions a deadline is made of', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.double({ min: 0, max: 5_000, noNaN: true }), { minLength: 1, maxLength: 30 }),
        async (delays) => {
          const clock = manualClock()
          await clock.timeline.advance(1 / 3)
          let fired = 0
          for (const ms of delays) {
            const deadline = clock.monotonic() + ms
            clock.after(deadline - clock.monotonic(), () => {
              fired += 1
              expect(clock.monotonic()).toBeGreaterThanOrEqual(deadline)
              expect(clock.monotonic()).toBeLessThan(Math.max(deadline + 0.01, 2))
            })
          }
          await clock.timeline.advance('6s')
          expect(fired).toBe(delays.length)
        },
      ),
      { numRuns: 50 },
    )
  })

  it('keeps time moving under a timer that sets itself with no delay', async () => {
    const clock = manualClock()
    let fired = 0
    const again = () => {
      fired += 1
      clock.after(-5, again)
    }
    clock.after(0, again)
    await clock.timeline.advance(100)
    expect(fired).toBe(100)
  })

  it('refuses delays that Node would silently take for 1 ms', () => {
    const clock = manualClock()
    for (const ms of [2 ** 31, Number.POSITIVE_INFINITY, Number.NaN]) {
      expect(() => clock.after(ms, () => {})).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    }
  })

  it('fires nothing once its machine has been halted; others go on', async () => {
    const timeline = createTimeline()
    const dead = timeline.clock()
    const alive = timeline.clock()
    const fired: string[] = []
    dead.after(10, () => fired.push('dead'))
    alive.after(10, () => fired.push('alive'))
    dead.halt()
    dead.clear(dead.after(5, () => fired.push('dead, later')))
    dead.after(6, () => fired.push('dead, later'))
    await timeline.advance(20)
    expect(fired).toEqual(['alive'])
    expect(timeline.pending).toBe(0)
  })
})
