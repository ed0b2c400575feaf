import { parseArgs } from 'node:util'
import { report, runSeeds } from './seeds.ts'

/** `npm run simulate -- --seed 123` replays one seed; `--from 1 --count 1000` runs many. */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '100' },
  },
})
const summary =
  values.seed === undefined
    ? await runSeeds({
        from: Number(values.from),
        count: Number(values.count),
        onSeed: (seed) => process.stderr.write(`\rseed ${seed}`),
      })
    : await runSeeds({ from: Number(values.seed), count: 1 })
process.stdout.write(`\n${report(summary)}\n`)
if (values.seed !== undefined) process.stdout.write(`trace ${summary.results[0]?.hash}\n`)
process.exitCode = summary.failures.length === 0 ? 0 : 1
