import { exercisedTooLittle, list, runEach, type SeedRange, type Summary, sumUp, total, verdict } from '../summary.ts'
import { type DurableExercise, type DurableResult, runDurable } from './scenario.ts'

export type DurableSummary = Summary<DurableExercise, DurableResult>

export async function runDurableSeeds(range: SeedRange): Promise<DurableSummary> {
  return summariseDurable(await runEach(range, runDurable))
}

export function summariseDurable(results: readonly DurableResult[]): DurableSummary {
  return sumUp<DurableExercise, DurableResult>(results, 'npm run simulate -- --durable --seed')
}

/** Least that must be exercised per 1,000 seeds: a run that does less proves too little. */
export const LEAST_PER_THOUSAND: Readonly<Record<DurableExercise, number>> = {
  acknowledged: 1_000,
  completed: 100,
  failed: 100,
  cancelled: 100,
  interrupted: 100,
  'run again': 100,
  'resumed watch': 100,
  resent: 100,
  'submit joined': 100,
  'answer back over hops': 100,
  'streams whole': 100,
  'streams broken': 100,
  CALL_CYCLE: 100,
  QUEUE_FULL: 100,
  LEASE_EXPIRED: 100,
  'torn write': 100,
  replayed: 100,
  forged: 100,
}
/** Least share of acknowledged tasks that must be completed. */
const LEAST_COMPLETED = 0.6

/** What was exercised too little, for as many seeds as were run. */
export function tooLittleDurable(summary: DurableSummary): string[] {
  const missing = exercisedTooLittle(summary, LEAST_PER_THOUSAND)
  const { completed, acknowledged } = summary.exercised
  const share = completed / Math.max(1, acknowledged)
  if (share < LEAST_COMPLETED) {
    missing.push(`${Math.round(share * 100)} % of the acknowledged tasks were completed, at least 60 % are wanted`)
  }
  return missing
}

export function reportDurable({ results, failures, exercised }: DurableSummary): string {
  const peers: Record<string, number> = {}
  for (const result of results) peers[result.peers] = (peers[result.peers] ?? 0) + 1
  const tasks = results.reduce((sum, one) => sum + one.tasks, 0)
  const { completed, acknowledged } = exercised
  return [
    `${results.length} seeds of long work; seeds by number of peers: ${Object.entries(peers)
      .map(([number, times]) => `${times} × ${number}`)
      .join(', ')}`,
    `${tasks} tasks, as their owners know them: ${list(total(results.map(({ ends }) => ends)))}`,
    `calls, streams, sessions: ${list(total(results.map(({ calls }) => calls)))}`,
    `exercised: ${list(exercised)}`,
    `${Math.round((100 * completed) / Math.max(1, acknowledged))} % of the acknowledged tasks were completed`,
    ...verdict(failures),
  ].join('\n')
}
