import { describe, expect, test } from 'vitest'
import { runScenario } from './scenario.ts'
import { report, runSeeds, tooLittle } from './seeds.ts'

const COUNTS = { test: 100, ci: 1_000, long: 5_000 }
const count = COUNTS[(process.env.HERMES_TEST_TIER ?? 'test') as keyof typeof COUNTS] ?? COUNTS.test

describe('5 peers, all faults, skew within ±4 min', () => {
  test(`every promise is kept in ${count} seeds, and enough of each fault was met`, {
    timeout: count * 6_000,
  }, async () => {
    const summary = await runSeeds({ from: 1, count })
    process.stdout.write(`${report(summary)}\n`)
    expect(summary.failures).toEqual([])
    expect(tooLittle(summary)).toEqual([])
  })

  test('the same seed gives the same trace, another seed another one', { timeout: 60_000 }, async () => {
    const [first, again, other] = [
      await runScenario({ seed: 4242 }),
      await runScenario({ seed: 4242 }),
      await runScenario({ seed: 4243 }),
    ]
    expect(again.hash).toBe(first.hash)
    expect(again.codes).toEqual(first.codes)
    expect(other.hash).not.toBe(first.hash)
  })
})
