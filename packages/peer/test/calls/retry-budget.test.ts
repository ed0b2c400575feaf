import { seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { createRetryBudget } from '../../src/calls/retry-budget.ts'
import { DEFAULTS } from '../../src/defaults.ts'

const fresh = () => createRetryBudget({ size: DEFAULTS.retryBudget, refill: DEFAULTS.retryRefill })

describe('the retry budget', () => {
  it('holds 100 retries to begin with, and no more', () => {
    const budget = fresh()
    for (let i = 0; i < 5000; i++) budget.credit()
    let taken = 0
    while (budget.take()) taken++
    expect(taken).toBe(100)
  })

  it('gains one retry per ten calls', () => {
    const budget = fresh()
    while (budget.take());
    for (let i = 0; i < 9; i++) budget.credit()
    expect(budget.take()).toBe(false)
    budget.credit()
    budget.credit()
    expect(budget.take()).toBe(true)
    expect(budget.take()).toBe(false)
  })

  it.each([1, 0.5, 0.2])(
    'keeps the amplification under 1.1 in the long run when %d of all attempts fail',
    (failing) => {
      const budget = fresh()
      const random = seededRandom('amplification')
      const calls = 20_000
      let attempts = 0
      for (let call = 0; call < calls; call++) {
        budget.credit()
        // As a call does: at most three attempts, each after the first from the budget.
        for (let attempt = 1; attempt <= DEFAULTS.maxAttempts; attempt++) {
          if (attempt > 1 && !budget.take()) break
          attempts++
          if (!random.chance(failing)) break
        }
      }
      const allowed = calls * 1.1 + DEFAULTS.retryBudget
      expect(attempts).toBeLessThanOrEqual(allowed)
      expect((attempts - DEFAULTS.retryBudget) / calls).toBeLessThanOrEqual(1.1)
    },
  )
})
