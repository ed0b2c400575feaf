import { type DurableExercise, type DurableResult, runDurable } from './scenario.ts'

export interface DurableSummary {
  readonly results: readonly DurableResult[]
  /** One line per broken promise, each with the command that replays it. */
  readonly failures: readonly string[]
  readonly exercised: Readonly<Record<DurableExercise, number>>
}

export async function runDurableSeeds(options: {
  from: number
  count: number
  onSeed?: (seed: number) => void
}): Promise<DurableSummary> {
  const results: DurableResult[] = []
  for (let seed = options.from; seed < options.from + options.count; seed++) {
    options.onSeed?.(seed)
    results.push(await runDurable({ seed }))
  }
  return summariseDurable(results)
}

export function summariseDurable(results: readonly DurableResult[]): DurableSummary {
  const exercised = {} as Record<DurableExercise, number>
  for (const result of results) {
    for (const [what, times] of Object.entries(result.exercised)) {
      exercised[what as DurableExercise] = (exercised[what as DurableExercise] ?? 0) + times
    }
  }
  const failures = results.flatMap(({ seed, broken }) =>
    broken.map((what) => `seed ${seed}: ${what}\n  replay: npm run simulate -- --durable --seed ${seed}`),
  )
  return { results, failures, exercised }
}

/** Least that must be exercised per 1,000 seeds: a run that does less proves too little. */
const LEAST_PER_THOUSAND: Readonly<Record<DurableExercise, number>> = {
  completed: 100,
  failed: 100,
  cancelled: 100,
  interrupted: 100,
  'run again': 100,
  'resumed watch': 100,
  resent: 100,
  'submit joined': 100,
  acknowledged: 1_000,
}
/** Least share of acknowledged tasks that must be completed. */
const LEAST_COMPLETED = 0.6

/** What was exercised too little, for as many seeds as were run. */
export function tooLittleDurable({ results, exercised }: DurableSummary): string[] {
  const missing: string[] = []
  for (const [what, least] of Object.entries(LEAST_PER_THOUSAND)) {
    const times = exercised[what as DurableExercise] ?? 0
    const wanted = Math.ceil((least * results.length) / 1000)
    if (times < wanted)
      missing.push(`${what}: ${times} times in ${results.length} seeds, at least ${wanted} are wanted`)
  }
  const share = exercised.completed / Math.max(1, exercised.acknowledged)
  if (share < LEAST_COMPLETED) {
    missing.push(`${Math.round(share * 100)} % of the acknowledged tasks were completed, at least 60 % are wanted`)
  }
  return missing
}

export function reportDurable({ results, failures, exercised }: DurableSummary): string {
  const ends: Record<string, number> = {}
  for (const result of results)
    for (const [end, times] of Object.entries(result.ends)) ends[end] = (ends[end] ?? 0) + times
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .map(([what, n]) => `${what} ${n}`)
      .join(', ')
  const tasks = results.reduce((total, one) => total + one.tasks, 0)
  return [
    `${results.length} seeds of long work, ${tasks} tasks, as their owners know them: ${list(ends)}`,
    `exercised: ${list(exercised)}`,
    ...failures.slice(0, 20),
    failures.length === 0 ? 'every promise was kept' : `${failures.length} broken promises`,
  ].join('\n')
}
