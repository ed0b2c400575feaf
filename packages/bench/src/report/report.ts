import { cpus, loadavg, release } from 'node:os'
import { quantile } from '../measure/statistics.ts'
import { BASE, type RowEntry } from '../rows.ts'
import type { Samples } from './samples.ts'
import { renderTable } from './table.ts'

export interface Run {
  readonly rows: readonly RowEntry[]
  readonly rounds: number
  readonly seconds: number
  /** Why cores could fall asleep, if they could. */
  readonly coresAsleep: string | undefined
  readonly samples: Samples
}

export function machine(): Readonly<Record<string, string | number>> {
  const [first] = cpus()
  return { cpu: first?.model ?? 'unknown', cores: cpus().length, kernel: release(), node: process.version }
}

/** What is printed at the end. */
export function renderReport(run: Run): string {
  const { cpu, cores, node } = machine()
  const noise = run.samples.all('otherWork')
  const lines = [
    renderTable(run.rows, run.samples),
    '',
    `Medians of ${run.rounds} rounds, interleaved, ${run.seconds} s in all; ratio: hermes-peer ÷ ${BASE}. Only ratios travel between machines.`,
    `${cpu}, ${cores} cores, Node ${node}, load ${loadavg()[0]?.toFixed(1)}.`,
    ...run.rows.map((row) => `${row.name}: ${row.label}.`),
  ]
  if (noise.length > 0) {
    const [usual, worst] = [quantile(noise, 0.5), Math.max(...noise)].map((share) => `${Math.round(share * 100)} %`)
    lines.push(
      `Other work took ${usual} of the cores in the median timed part (worst ${worst}): above 10 %, run again.`,
    )
  }
  if (run.coresAsleep !== undefined) lines.push(`Cores were not kept awake (${run.coresAsleep}): latencies are higher.`)
  const failures = run.samples.failures()
  if (failures.length > 0) lines.push('', 'What did not work:', ...failures.map((failure) => `- ${failure}`))
  return lines.join('\n')
}
