import { parseArgs } from 'node:util'
import { runChaos } from './chaos.ts'

/** `npm run chaos` gives 20,000 tasks to 5 agents that are killed and stopped; `--seconds 60` ends it sooner. */
const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '5' },
    tasks: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '1800' },
  },
})
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())

const result = await runChaos({
  agents: Number(values.agents),
  tasks: Number(values.tasks),
  seconds: Number(values.seconds),
  signal: stop.signal,
  report: (line) => process.stderr.write(`${line}\n`),
})
const { submitted, refused, acknowledged, started, ends, kills, stops, tookMs, drainedMs, broken } = result
process.stdout.write(
  [
    `${submitted} tasks in ${Math.round(tookMs / 1000)} s, ${kills} kills, ${stops} stops`,
    `${acknowledged} acknowledged, ${refused} refused, ${started} starts of handlers`,
    `ends as their owners know them: ${Object.entries(ends)
      .map(([code, n]) => `${code} ${n}`)
      .join(', ')}`,
    drainedMs === undefined
      ? 'not everything had ended a minute after the last fault'
      : `everything had ended ${(drainedMs / 1000).toFixed(1)} s after the last fault`,
    ...broken.slice(0, 20),
    broken.length === 0 ? 'every promise was kept' : `${broken.length} broken promises`,
    '',
  ].join('\n'),
)
process.exitCode = broken.length === 0 && drainedMs !== undefined ? 0 : 1
