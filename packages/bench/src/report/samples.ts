import { median } from '../measure/statistics.ts'
import type { RowName } from '../rows.ts'
import type { Figures, ScenarioName } from '../scenarios/scenario.ts'

/** Every figure that was measured, and what went wrong. */
export interface Samples {
  take(row: RowName, scenario: ScenarioName, figures: Figures): void
  fail(row: RowName, scenario: ScenarioName | 'round', error: unknown): void
  /** The median of one figure over the rounds; undefined when it was not measured. */
  median(row: RowName, figure: FigureName): number | undefined
  /** One figure of all rows and scenarios. */
  all(name: string): readonly number[]
  failures(): readonly string[]
  toJSON(): unknown
}

/** `scenario.figure`, such as `latency.p50Us`. */
export type FigureName = `${ScenarioName}.${string}`

export function createSamples(): Samples {
  // Bounded by rows × scenarios × rounds.
  const values = new Map<RowName, Map<string, number[]>>()
  const failures = new Map<string, number>()
  const listOf = (row: RowName, figure: string) => {
    const figures = values.get(row) ?? new Map<string, number[]>()
    values.set(row, figures)
    const list = figures.get(figure) ?? []
    figures.set(figure, list)
    return list
  }
  return {
    take(row, scenario, figures) {
      for (const [name, value] of Object.entries(figures)) {
        if (!Number.isNaN(value)) listOf(row, `${scenario}.${name}`).push(value)
      }
    },
    fail(row, scenario, error) {
      const line = `${row}, ${scenario}: ${error instanceof Error ? error.message : String(error)}`
      failures.set(line, (failures.get(line) ?? 0) + 1)
    },
    median: (row, figure) => median(values.get(row)?.get(figure)),
    all: (name) =>
      [...values.values()].flatMap((figures) =>
        [...figures].flatMap(([figure, list]) => (figure.endsWith(`.${name}`) ? list : [])),
      ),
    failures: () => [...failures].map(([line, times]) => (times === 1 ? line : `${line} (${times} times)`)),
    toJSON: () => ({
      rows: Object.fromEntries([...values].map(([row, figures]) => [row, Object.fromEntries(figures)])),
      failures: Object.fromEntries(failures),
    }),
  }
}
