import { createKeyRing, type KeyRing } from './stage.ts'

/** What every kind of simulated run reports. */
export interface RunResult<Exercise extends string> {
  readonly seed: number
  readonly hash: string
  /** Broken promises, each beginning with the name of its checker. */
  readonly broken: readonly string[]
  readonly exercised: Readonly<Record<Exercise, number>>
}

export interface Summary<Exercise extends string, Result extends RunResult<Exercise>> {
  readonly results: readonly Result[]
  /** One line per broken promise, each with the command that replays it. */
  readonly failures: readonly string[]
  readonly exercised: Readonly<Record<Exercise, number>>
}

export interface SeedRange {
  from: number
  count: number
  onSeed?: (seed: number) => void
}

/** Runs one seed after the other; the keys of the agents are made once for all. */
export async function runEach<Result>(
  { from, count, onSeed }: SeedRange,
  run: (options: { seed: number; keys: KeyRing }) => Promise<Result>,
): Promise<Result[]> {
  const keys = createKeyRing()
  const results: Result[] = []
  for (let seed = from; seed < from + count; seed++) {
    onSeed?.(seed)
    results.push(await run({ seed, keys }))
  }
  return results
}

/** `replay`: the command that runs one seed, to which the seed is added. */
export function sumUp<Exercise extends string, Result extends RunResult<Exercise>>(
  results: readonly Result[],
  replay: string,
): Summary<Exercise, Result> {
  const failures = results.flatMap(({ seed, broken }) =>
    broken.map((what) => `seed ${seed}: ${what}\n  replay: ${replay} ${seed}`),
  )
  return { results, failures, exercised: total(results.map(({ exercised }) => exercised)) }
}

/** What was exercised less than `leastPerThousand` wants, for as many seeds as were run. */
export function exercisedTooLittle<Exercise extends string>(
  { results, exercised }: { results: readonly unknown[]; exercised: Readonly<Record<Exercise, number>> },
  leastPerThousand: Readonly<Record<Exercise, number>>,
): string[] {
  const missing: string[] = []
  for (const what of Object.keys(leastPerThousand) as Exercise[]) {
    const times = exercised[what] ?? 0
    const wanted = Math.ceil((leastPerThousand[what] * results.length) / 1000)
    if (times < wanted)
      missing.push(`${what}: ${times} times in ${results.length} seeds, at least ${wanted} are wanted`)
  }
  return missing
}

export function total<Key extends string>(all: readonly Readonly<Record<Key, number>>[]): Record<Key, number> {
  const sums = {} as Record<Key, number>
  for (const counts of all)
    for (const [what, times] of Object.entries(counts) as [Key, number][]) sums[what] = (sums[what] ?? 0) + times
  return sums
}

export const list = (counts: Readonly<Record<string, number>>, show: (n: number) => string = String): string =>
  Object.entries(counts)
    .map(([what, n]) => `${what} ${show(n)}`)
    .join(', ')

/** The last lines of a report: what was broken, if anything. */
export const verdict = (failures: readonly string[]): string[] => [
  ...failures.slice(0, 20),
  failures.length === 0 ? 'every promise was kept' : `${failures.length} broken promises`,
]
