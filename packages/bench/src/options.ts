import { parseArgs } from 'node:util'
import { ROWS, type RowEntry } from './rows.ts'
import { SCENARIOS, type ScenarioName } from './scenarios/scenario.ts'

export interface Options {
  readonly rounds: number
  readonly rows: readonly RowEntry[]
  readonly scenarios: ReadonlySet<ScenarioName>
  /** Where the samples go as JSON. */
  readonly json: string | undefined
  readonly help: boolean
}

export const USAGE = `npm run bench -- [--rounds N] [--only NAME,…] [--json FILE]
  --rounds N     interleaved rounds, 1 to 100; the table shows medians (default 3)
  --only NAME,…  only these rows (${ROWS.map((row) => row.name).join(', ')})
                 and measurements (${SCENARIOS.join(', ')})
  --json FILE    writes every sample to a file`

/** Throws an `Error` that names the flag and what it takes. */
export function readOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: { type: 'string', default: '3' },
      only: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
    throw new Error(`--rounds is a whole number from 1 to 100, not ${values.rounds}`)
  }
  const names = new Set(values.only?.split(',').map((name) => name.trim()))
  const rows = ROWS.filter((row) => names.has(row.name))
  const scenarios = SCENARIOS.filter((scenario) => names.has(scenario))
  const known: string[] = [...ROWS.map((row) => row.name), ...SCENARIOS]
  const unknown = [...names].find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`--only does not know ${unknown}; it knows ${known.join(', ')}`)
  return {
    rounds,
    rows: rows.length > 0 ? rows : ROWS,
    scenarios: new Set(scenarios.length > 0 ? scenarios : SCENARIOS),
    json: values.json,
    help: values.help,
  }
}
