import { describe, expect, test } from 'vitest'
import { runDurable } from './scenario.ts'
import { LEAST_PER_THOUSAND, reportDurable, runDurableSeeds, summariseDurable, tooLittleDurable } from './seeds.ts'

const COUNTS = { test: 100, ci: 1_000, long: 5_000 }
const count = COUNTS[(process.env.HERMES_TEST_TIER ?? 'test') as keyof typeof COUNTS] ?? COUNTS.test

describe('5 to 25 peers with journals, a fifth of all envelopes lost, crashes and restarts', () => {
  test(`every promise of long work is kept in ${count} seeds, and enough of each end was met`, {
    timeout: count * 10_000,
  }, async () => {
    const summary = await runDurableSeeds({ from: 1, count })
    process.stdout.write(`${reportDurable(summary)}\n`)
    expect(summary.failures).toEqual([])
    expect(tooLittleDurable(summary)).toEqual([])
  })

  test('the same seed gives the same trace, another seed another one', { timeout: 60_000 }, async () => {
    const [first, again, other] = [
      await runDurable({ seed: 4242 }),
      await runDurable({ seed: 4242 }),
      await runDurable({ seed: 4243 }),
    ]
    expect(again.hash).toBe(first.hash)
    expect(again.ends).toEqual(first.ends)
    expect(other.hash).not.toBe(first.hash)
  })

  test('a run that exercises too little says what is missing', () => {
    const exercised = { ...LEAST_PER_THOUSAND, completed: 1, acknowledged: 2, interrupted: 0 }
    const summary = summariseDurable([
      { seed: 1, hash: '', peers: 5, broken: [], tasks: 3, ends: {}, calls: {}, exercised },
    ])
    expect(tooLittleDurable(summary)).toEqual([
      'interrupted: 0 times in 1 seeds, at least 1 are wanted',
      '50 % of the acknowledged tasks were completed, at least 60 % are wanted',
    ])
  })
})
