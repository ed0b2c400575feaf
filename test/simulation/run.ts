import { parseArgs } from 'node:util'
import { reportDurable, runDurableSeeds } from './durable/seeds.ts'
import { report, runSeeds } from './seeds.ts'

/** `npm run simulate -- --seed 123` replays one seed; `--from 1 --count 1000` runs many; `--durable` those of long work. */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '100' },
    durable: { type: 'boolean', default: false },
  },
})
const one = values.seed !== undefined
const range = one
  ? { from: Number(values.seed), count: 1 }
  : {
      from: Number(values.from),
      count: Number(values.count),
      onSeed: (seed: number) => process.stderr.write(`\rseed ${seed}`),
    }
if (values.durable) {
  const summary = await runDurableSeeds(range)
  end(reportDurable(summary), summary)
} else {
  const summary = await runSeeds(range)
  end(report(summary), summary)
}

function end(
  text: string,
  { results, failures }: { results: readonly { hash: string }[]; failures: readonly string[] },
) {
  process.stdout.write(`\n${text}\n`)
  if (one) process.stdout.write(`trace ${results[0]?.hash}\n`)
  process.exitCode = failures.length === 0 ? 0 : 1
}
