import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { createLoadMeter } from '../../src/calls/load.ts'
import { createPlaces } from '../../src/calls/places.ts'

describe('the load that is told', () => {
  const scene = (maxConcurrency: number) => {
    const clock = manualClock()
    const places = createPlaces({ most: maxConcurrency, queue: { clock, ageMs: 10_000 } })
    const meter = createLoadMeter({ clock, mostOfAll: 100, spanMs: 9000 })
    const fullness = () => meter([{ places, contract: { constraints: { maxConcurrency } } }]).fullness
    return { clock, places, fullness }
  }
  const turn = () => ({ priority: 3, since: 0, start: () => undefined }) as never

  it('is the mean since the last report, not what happens to run at that moment', async () => {
    const { clock, places, fullness } = scene(2)
    expect(fullness()).toBe(0)
    places.enter(turn())
    await clock.timeline.advance('5s')
    places.leave()
    await clock.timeline.advance('5s')
    // One of two places for half of the time, and idle now.
    expect(fullness()).toBeCloseTo(0.25, 10)
    await clock.timeline.advance('10s')
    expect(fullness()).toBe(0)
  })

  it('read again at once is the same, and soon after hardly changed', async () => {
    const { clock, places, fullness } = scene(1)
    fullness()
    await clock.timeline.advance('10s')
    places.enter(turn())
    expect([fullness(), fullness()]).toEqual([0, 0])
    await clock.timeline.advance(900)
    expect(fullness()).toBeCloseTo(0.1, 10)
    await clock.timeline.advance('10s')
    expect(fullness()).toBe(1)
  })
})
