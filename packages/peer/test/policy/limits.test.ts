import { isHermesError } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimits } from '../../src/policy/limits.ts'
import { policyOfObject } from '../../src/policy/read.ts'

function counting(rule: { max_qps?: number; max_concurrency?: number }, most = 1000) {
  const clock = manualClock()
  const limits = createLimits({ clock, most })
  const [only] = policyOfObject({ serve: [{ principal: '*', capability: 'pay', ...rule }] }).serve
  if (!only) throw new Error('no rule')
  const enter = (agentId = 'pm') => limits.enter([{ agentId, rule: only }])
  return { clock, limits, rule: only, enter }
}
const entered = (result: unknown) => typeof result === 'function'

describe('F-39 limits by what a key has proven', () => {
  it('lets through as many at once as a second has, then so many a second, and says when', async () => {
    const { clock, enter } = counting({ max_qps: 10 })
    expect(Array.from({ length: 20 }, () => entered(enter())).filter(Boolean)).toHaveLength(10)
    const refused = enter()
    expect(isHermesError(refused) && refused).toMatchObject({
      code: 'QUOTA_EXCEEDED',
      retryable: true,
      retryAfterMs: 100,
    })
    await clock.timeline.advance(100)
    expect([entered(enter()), entered(enter())]).toEqual([true, false])
  })

  it('never lets through more than its rate and its burst, whatever the pattern of asking', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 1, max: 30 })), { maxLength: 20 }),
        async (qps, steps) => {
          const { clock, enter } = counting({ max_qps: qps })
          const passed: number[] = []
          for (const [wait, count] of steps) {
            await clock.timeline.advance(wait)
            for (let n = 0; n < count; n++) if (entered(enter())) passed.push(clock.monotonic())
          }
          for (const [from, start] of passed.entries()) {
            for (const [to, end] of passed.entries()) {
              if (to >= from) expect(to - from + 1).toBeLessThanOrEqual(qps + (qps * (end - start)) / 1000 + 1e-6)
            }
          }
        },
      ),
      { numRuns: 50 },
    )
  })

  it('counts each agent for itself', () => {
    const { enter } = counting({ max_qps: 1 })
    expect([entered(enter('a')), entered(enter('a')), entered(enter('b'))]).toEqual([true, false, true])
  })

  it('gives places back once, however often that is said', () => {
    const { enter } = counting({ max_concurrency: 2 })
    const [first, second] = [enter(), enter()]
    expect(entered(enter())).toBe(false)
    for (const leave of [first, first]) if (typeof leave === 'function') leave()
    expect([entered(enter()), entered(enter())]).toEqual([true, false])
    if (typeof second === 'function') second()
    expect(entered(enter())).toBe(true)
  })

  it('takes from all or from none', () => {
    const { limits, rule, enter } = counting({ max_qps: 1 })
    expect(entered(enter('b'))).toBe(true)
    expect(
      entered(
        limits.enter([
          { agentId: 'a', rule },
          { agentId: 'b', rule },
        ]),
      ),
    ).toBe(false)
    expect(entered(enter('a'))).toBe(true)
  })

  it('takes up places of an earlier life whatever the limit says', () => {
    const { limits, rule, enter } = counting({ max_concurrency: 1 })
    const leave = [limits.resume([{ agentId: 'pm', rule }]), limits.resume([{ agentId: 'pm', rule }])]
    leave[0]?.()
    expect(entered(enter())).toBe(false)
    leave[1]?.()
    expect(entered(enter())).toBe(true)
  })

  it('keeps a bounded number of counts: those that say nothing go first, and without such nobody new is let in', async () => {
    const { clock, limits, enter } = counting({ max_qps: 2, max_concurrency: 5 }, 3)
    const leave = ['a', 'b', 'c'].map(enter)
    expect(limits.size).toBe(3)
    expect(entered(enter('d'))).toBe(false)
    for (const one of leave.slice(0, 2)) if (typeof one === 'function') one()
    await clock.timeline.advance(10)
    expect(entered(enter('d'))).toBe(false)
    await clock.timeline.advance(1000)
    expect(entered(enter('d'))).toBe(true)
    expect(limits.size).toBeLessThanOrEqual(3)
    // The one whose work is under way has not been forgotten.
    for (let n = 0; n < 4; n++) {
      await clock.timeline.advance(1000)
      expect(entered(enter('c'))).toBe(true)
    }
    expect(entered(enter('c'))).toBe(false)
  })

  it('counts nothing for rules without limits', () => {
    const { limits, enter } = counting({})
    for (let n = 0; n < 1000; n++) expect(entered(enter(`agent-${n}`))).toBe(true)
    expect(limits.size).toBe(0)
  })
})
