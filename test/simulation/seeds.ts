import { type Exercise, runScenario, type ScenarioResult } from './scenario.ts'

export interface Summary {
  readonly results: readonly ScenarioResult[]
  /** One line per broken promise, each with the command that replays it. */
  readonly failures: readonly string[]
  /** Share of seeds in which each kind of fault really hit, 0..1. */
  readonly faultShare: Readonly<Record<string, number>>
  readonly exercised: Readonly<Record<Exercise, number>>
}

export async function runSeeds(options: {
  from: number
  count: number
  onSeed?: (seed: number) => void
}): Promise<Summary> {
  const results: ScenarioResult[] = []
  for (let seed = options.from; seed < options.from + options.count; seed++) {
    options.onSeed?.(seed)
    results.push(await runScenario({ seed }))
  }
  return summarise(results)
}

export function summarise(results: readonly ScenarioResult[]): Summary {
  const faultShare: Record<string, number> = {}
  const exercised = {} as Record<Exercise, number>
  for (const { faults, exercised: counts } of results) {
    for (const [kind, hits] of Object.entries(faults)) {
      faultShare[kind] = (faultShare[kind] ?? 0) + (hits > 0 ? 1 / results.length : 0)
    }
    for (const [what, times] of Object.entries(counts)) {
      exercised[what as Exercise] = (exercised[what as Exercise] ?? 0) + times
    }
  }
  const failures = results.flatMap(({ seed, broken }) =>
    broken.map((what) => `seed ${seed}: ${what}\n  replay: npm run simulate -- --seed ${seed}`),
  )
  return { results, failures, faultShare, exercised }
}

/** Least that must be exercised per 1,000 seeds, and least share of seeds that each fault must hit: a run that does less proves too little. */
export const LEAST_PER_THOUSAND: Readonly<Record<Exercise, number>> = {
  'duplicate joined': 100,
  'stored outcome': 100,
  'gap given up': 100,
  failover: 100,
  unseen: 100,
  OUTCOME_UNKNOWN: 100,
  replayed: 100,
  forged: 100,
}
export const LEAST_FAULT_SHARE = 0.5

/** What was exercised too little, for as many seeds as were run. */
export function tooLittle({ results, faultShare, exercised }: Summary): string[] {
  const missing: string[] = []
  for (const [what, least] of Object.entries(LEAST_PER_THOUSAND)) {
    const times = exercised[what as Exercise] ?? 0
    const wanted = Math.ceil((least * results.length) / 1000)
    if (times < wanted)
      missing.push(`${what}: ${times} times in ${results.length} seeds, at least ${wanted} are wanted`)
  }
  for (const [kind, share] of Object.entries(faultShare)) {
    if (share < LEAST_FAULT_SHARE)
      missing.push(`fault ${kind} hit in ${Math.round(share * 100)} % of seeds, at least 50 % are wanted`)
  }
  return missing
}

export function report(summary: Summary): string {
  const { results, failures, faultShare, exercised } = summary
  const calls = results.reduce((total, { calls }) => total + calls, 0)
  const codes: Record<string, number> = {}
  for (const result of results)
    for (const [code, times] of Object.entries(result.codes)) codes[code] = (codes[code] ?? 0) + times
  const list = (counts: Readonly<Record<string, number>>, show: (n: number) => string) =>
    Object.entries(counts)
      .map(([what, n]) => `${what} ${show(n)}`)
      .join(', ')
  return [
    `${results.length} seeds, ${calls} calls: ${list(codes, String)}`,
    `faults, share of seeds hit: ${list(faultShare, (share) => `${Math.round(share * 100)} %`)}`,
    `exercised: ${list(exercised, String)}`,
    ...failures.slice(0, 20),
    failures.length === 0 ? 'every promise was kept' : `${failures.length} broken promises`,
  ].join('\n')
}
