import { type Exercise, runScenario, type ScenarioResult } from './scenario.ts'
import {
  exercisedTooLittle,
  list,
  runEach,
  type SeedRange,
  type Summary as SummaryOf,
  sumUp,
  total,
  verdict,
} from './summary.ts'

export interface Summary extends SummaryOf<Exercise, ScenarioResult> {
  /** Share of seeds in which each kind of fault really hit, 0..1. */
  readonly faultShare: Readonly<Record<string, number>>
}

export async function runSeeds(range: SeedRange): Promise<Summary> {
  return summarise(await runEach(range, runScenario))
}

export function summarise(results: readonly ScenarioResult[]): Summary {
  const faultShare: Record<string, number> = {}
  for (const { faults } of results)
    for (const [kind, hits] of Object.entries(faults))
      faultShare[kind] = (faultShare[kind] ?? 0) + (hits > 0 ? 1 / results.length : 0)
  return { ...sumUp<Exercise, ScenarioResult>(results, 'npm run simulate -- --seed'), faultShare }
}

/** Least that must be exercised per 1,000 seeds, and least share of seeds that each fault must hit: a run that does less proves too little. */
const LEAST_PER_THOUSAND: Readonly<Record<Exercise, number>> = {
  'duplicate joined': 100,
  'stored outcome': 100,
  'gap given up': 100,
  failover: 100,
  unseen: 100,
  OUTCOME_UNKNOWN: 100,
  replayed: 100,
  forged: 100,
}
const LEAST_FAULT_SHARE = 0.5

/** What was exercised too little, for as many seeds as were run. */
export function tooLittle(summary: Summary): string[] {
  const missing = exercisedTooLittle(summary, LEAST_PER_THOUSAND)
  for (const [kind, share] of Object.entries(summary.faultShare)) {
    if (share < LEAST_FAULT_SHARE)
      missing.push(`fault ${kind} hit in ${Math.round(share * 100)} % of seeds, at least 50 % are wanted`)
  }
  return missing
}

export function report({ results, failures, faultShare, exercised }: Summary): string {
  const calls = results.reduce((sum, one) => sum + one.calls, 0)
  return [
    `${results.length} seeds, ${calls} calls: ${list(total(results.map(({ codes }) => codes)))}`,
    `faults, share of seeds hit: ${list(faultShare, (share) => `${Math.round(share * 100)} %`)}`,
    `exercised: ${list(exercised)}`,
    ...verdict(failures),
  ].join('\n')
}
