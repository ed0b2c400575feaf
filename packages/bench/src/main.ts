import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOptions, USAGE } from './options.ts'
import { machine, renderReport } from './report/report.ts'
import { createSamples } from './report/samples.ts'
import { keepCoresAwake } from './runner/awake.ts'
import { createQuiet } from './runner/quiet.ts'
import { runRound } from './runner/round.ts'
import { createWorkers } from './runner/workers.ts'

const options = parse()
const folder = mkdtempSync(join(tmpdir(), 'hermes-bench-'))
const workers = createWorkers()
const awake = await keepCoresAwake()
process.on('exit', () => {
  workers.killAll()
  awake.stop()
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130))

const samples = createSamples()
const quiet = createQuiet()
const startedAt = performance.now()
for (let round = 0; round < options.rounds; round++) {
  // Another row goes first each time, so that what changes on the machine meanwhile favours none.
  const turn = options.rows.map((_, i, rows) => rows[(i + round) % rows.length] ?? _)
  for (const entry of turn) {
    process.stderr.write(`round ${round + 1} of ${options.rounds}: ${entry.name}\n`)
    await runRound({
      entry,
      scenarios: options.scenarios,
      workers,
      folder,
      quiet,
      take: (scenario, figures) => samples.take(entry.name, scenario, figures),
      failed: (scenario, error) => samples.fail(entry.name, scenario, error),
    }).catch((error) => samples.fail(entry.name, 'round', error))
  }
}
const seconds = Math.round((performance.now() - startedAt) / 1000)
const run = { rows: options.rows, rounds: options.rounds, seconds, coresAsleep: awake.problem, samples }
console.log(renderReport(run))
if (options.json !== undefined) {
  const content = { at: new Date().toISOString(), machine: machine(), rounds: options.rounds, seconds, samples }
  writeFileSync(options.json, `${JSON.stringify(content, null, 2)}\n`)
}
process.exit(samples.failures().length === 0 ? 0 : 1)

function parse() {
  try {
    const read = readOptions(process.argv.slice(2))
    if (!read.help) return read
    console.log(USAGE)
    process.exit(0)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`)
    process.exit(2)
  }
}
