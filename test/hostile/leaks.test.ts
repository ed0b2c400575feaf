import { spawn } from 'node:child_process'
import { describe, expect, it, onTestFinished } from 'vitest'
import { program } from '../programs/program.ts'
import { within } from './eventually.ts'
import type { LeakReport } from './leaks-child.ts'
import { byTier } from './tier.ts'

const CALLS = byTier({ test: 2000, ci: 10_000, long: 200_000 })
const CYCLES = byTier({ test: 100, ci: 1000, long: 20_000 })
const MB = 1_000_000
/** A busy machine takes its time; a leak does not show in it. */
const LIMIT_MS = byTier({ test: 120_000, ci: 600_000, long: 7_200_000 })

interface Run {
  report: LeakReport
  errors: string
  code: number | null
  /** From the report to the end of the process. */
  lingeredMs: number
}

/** Runs in a process of its own, so that its heap is nobody else’s. */
async function run(): Promise<Run> {
  const script = await program('test/hostile/leaks-child')
  const child = spawn(process.execPath, ['--expose-gc', script, String(CALLS), String(CYCLES)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let output = ''
  let errors = ''
  let told = 0
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
    if (output.includes('\n')) told ||= performance.now()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      if (!output.includes('\n')) reject(new Error(`no report (exit ${code}): ${errors.slice(-2000)}`))
      else resolve({ report: JSON.parse(output) as LeakReport, errors, code, lingeredMs: performance.now() - told })
    })
  })
}

/** Everything that is not as it was, in words. */
function complaints({ calls, sent, afterCalls, afterCycles, warnings, balance }: LeakReport, made: number): string[] {
  const wrong: string[] = [...warnings]
  const say = (fault: boolean, text: string) => {
    if (fault) wrong.push(text)
  }
  const ways = Object.keys(calls).sort().join()
  say(ways !== 'CANCELLED,OK,TIMEOUT,WANTED', `calls ended with ${ways}`)
  const ended = Object.values(calls).reduce((sum, count) => sum + count, 0)
  say(ended !== made, `${ended} of ${made} calls ended`)
  say(balance.inFlight !== 0 || balance.calls !== made, `the balance is ${JSON.stringify(balance)}`)
  // Nearly all were sent: no place is kept by a call that has ended.
  say(sent < made * 0.9, `${sent} of ${made} calls were sent`)
  for (const [what, samples] of Object.entries({ calls: afterCalls, connections: afterCycles })) {
    const [first, second] = samples as [(typeof samples)[0], (typeof samples)[0]]
    const grown = (second.heap - first.heap) / MB
    say(
      grown > byTier({ test: 2, ci: 3, long: 5 }),
      `the heap has grown by ${grown.toFixed(1)} MB over half of the ${what}`,
    )
    say(second.listeners !== first.listeners, `${second.listeners - first.listeners} more listeners after ${what}`)
    say(second.resources > first.resources + 3, `${second.resources - first.resources} more resources after ${what}`)
  }
  return wrong
}

describe('F-48 slow leaks from signals and listeners', () => {
  it(
    `${CALLS} calls that end in every way and ${CYCLES} connections leave nothing behind`,
    async () => {
      const { report, errors, code, lingeredMs } = await within(LIMIT_MS, 'the child process', run())
      console.info(
        `calls ${JSON.stringify(report.calls)}; heap MB after calls ${heaps(report.afterCalls)}, after connections ${heaps(report.afterCycles)}`,
      )
      expect(complaints(report, CALLS)).toEqual([])
      expect(errors).toBe('')
      expect(code).toBe(0)
      // The process ends as soon as its peers have stopped.
      expect(lingeredMs).toBeLessThan(5000)
    },
    LIMIT_MS + 10_000,
  )

  it('the checker sees each kind of leak', () => {
    const sample = { heap: 30 * MB, resources: 16, listeners: 7 }
    const calls = { OK: 25, WANTED: 25, CANCELLED: 25, TIMEOUT: 25 }
    const balance = { calls: 100, succeeded: 25, failed: 75, inFlight: 0 }
    const sound: LeakReport = {
      calls,
      sent: 100,
      afterCalls: [sample, sample],
      afterCycles: [sample, sample],
      warnings: [],
      balance,
    }
    expect(complaints(sound, 100)).toEqual([])
    const grown = (more: Partial<typeof sample>) => [sample, { ...sample, ...more }]
    const leaks: Partial<LeakReport>[] = [
      { afterCalls: grown({ heap: 36 * MB }) },
      { afterCycles: grown({ heap: 36 * MB }) },
      { afterCalls: grown({ listeners: 8 }) },
      { afterCycles: grown({ resources: 30 }) },
      { warnings: ['MaxListenersExceededWarning: 11 abort listeners'] },
      { sent: 60 },
      { calls: { ...calls, TIMEOUT: 24 } },
      { calls: { OK: 100 } },
      { balance: { ...balance, inFlight: 1 } },
    ]
    for (const leak of leaks) expect(complaints({ ...sound, ...leak }, 100)).toHaveLength(1)
  })

  const heaps = (samples: LeakReport['afterCalls']) => samples.map(({ heap }) => (heap / MB).toFixed(1)).join(' → ')
})
