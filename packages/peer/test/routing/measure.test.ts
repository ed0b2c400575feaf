import { manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createMeasurements } from '../../src/routing/measure.ts'

const fresh = (more: Partial<typeof DEFAULTS> = {}) =>
  createMeasurements({ tunables: { ...DEFAULTS, ...more }, clock: manualClock() })

/** One call that ends. */
function call(measurements: ReturnType<typeof fresh>, succeeded: boolean, ms: number, agent = 'a', capability = 'c') {
  measurements.begin(agent, capability)
  measurements.end(agent, capability, succeeded, ms)
}

describe('what is measured', () => {
  it('is nothing before the first call', () => {
    expect(fresh().read('a', 'c')).toEqual({ calls: 0, success: 1, p50Ms: undefined, inFlight: 0 })
  })

  it('is kept per agent and capability', () => {
    const m = fresh()
    call(m, true, 10, 'a', 'c')
    call(m, false, 10, 'b', 'c')
    call(m, true, 30, 'a', 'd')
    expect(m.read('a', 'c')).toMatchObject({ calls: 1, success: 1, p50Ms: 10 })
    expect(m.read('b', 'c')).toMatchObject({ calls: 1, p50Ms: undefined })
    expect(m.read('a', 'd').p50Ms).toBe(30)
  })

  it('counts what is in flight, never below none', () => {
    const m = fresh()
    m.begin('a', 'c')
    m.begin('a', 'c')
    expect(m.read('a', 'c').inFlight).toBe(2)
    m.end('a', 'c', true, 1)
    m.end('a', 'c', false, 1)
    m.end('a', 'c', true, 1)
    expect(m.read('a', 'c').inFlight).toBe(0)
  })

  it('takes the median of the last successful calls: one outlier changes nothing', () => {
    const m = fresh()
    for (const ms of [10, 11, 12, 13, 60_000]) call(m, true, ms)
    expect(m.read('a', 'c').p50Ms).toBe(12)
  })

  it('does not take fast failures for low latency', () => {
    const m = fresh()
    for (let i = 0; i < 10; i++) call(m, true, 500)
    for (let i = 0; i < 50; i++) call(m, false, 1)
    expect(m.read('a', 'c').p50Ms).toBe(500)
  })

  it('forgets old samples: at most 64 are kept', () => {
    const m = fresh()
    for (let i = 0; i < DEFAULTS.latencySamples; i++) call(m, true, 1000)
    for (let i = 0; i < DEFAULTS.latencySamples; i++) call(m, true, 5)
    expect(m.read('a', 'c').p50Ms).toBe(5)
  })

  it('moves the success rate by the weight of the newest call', () => {
    const m = fresh({ successWeight: 0.1 })
    call(m, false, 1)
    expect(m.read('a', 'c').success).toBeCloseTo(0.9, 10)
    call(m, false, 1)
    expect(m.read('a', 'c').success).toBeCloseTo(0.81, 10)
    call(m, true, 1)
    expect(m.read('a', 'c').success).toBeCloseTo(0.829, 10)
  })

  it('F-31 takes an agent that fails all its calls out of favour within 20 of them, and lets it recover', () => {
    const m = fresh()
    for (let i = 0; i < 20; i++) call(m, false, 2)
    expect(m.read('a', 'c').success).toBeLessThan(0.15)
    for (let i = 0; i < 40; i++) call(m, true, 2)
    expect(m.read('a', 'c').success).toBeGreaterThan(0.95)
  })

  it('keeps success between 0 and 1 and the median among the samples', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(5000)), { minLength: 1, maxLength: 200 }), (calls) => {
        const m = fresh()
        for (const [succeeded, ms] of calls) call(m, succeeded, ms)
        const read = m.read('a', 'c')
        expect(read.calls).toBe(calls.length)
        expect(read.success).toBeGreaterThanOrEqual(0)
        expect(read.success).toBeLessThanOrEqual(1)
        const good = calls.filter(([succeeded]) => succeeded).map(([, ms]) => ms)
        if (good.length === 0) expect(read.p50Ms).toBeUndefined()
        else expect(good).toContain(read.p50Ms)
      }),
      { numRuns: 200 },
    )
  })

  it('is bounded: the longest unused pairs go first', () => {
    const m = fresh()
    for (let i = 0; i < 10_001; i++) call(m, false, 1, `agent${i}`)
    expect(m.read('agent0', 'c').calls).toBe(0)
    expect(m.read('agent10000', 'c').calls).toBe(1)
  })
})
