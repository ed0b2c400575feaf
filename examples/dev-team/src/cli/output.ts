import type { AgentEvent, JobEvent, TeamEvent } from '../events.ts'
import type { Failure } from '../failures.ts'
import { EXIT_CODES } from '../failures.ts'
import { createLastLines } from './last-lines.ts'
import { count, describe } from './transcript.ts'

export interface Balance {
  readonly calls: number
  readonly succeeded: number
  readonly failed: number
  readonly cancelled: number
  /** In flight when the agent that made them was killed. */
  readonly cutOff: number
  readonly failovers: number
}

/** Everything that is written to the terminal. */
export interface Output {
  event(agent: string, event: AgentEvent | TeamEvent): void
  done(result: {
    file: string
    reversalFile: string | undefined
    traceId: string
    /** Of the lives of pm before the last. */
    earlierTraceIds: readonly string[]
    balance: Balance
    sample: boolean
  }): void
  failed(failure: Failure): void
  /** The user ended it. */
  stopped(exitCode: number): void
}

export interface OutputOptions {
  json: boolean
  /** Takes whole lines. */
  write: (text: string) => void
  writeError: (text: string) => void
  /** Seconds since the start. */
  seconds: () => number
  /** Dims times; only for a terminal. */
  colour: boolean
}

export function createOutput(options: OutputOptions): Output {
  return options.json ? jsonOutput(options) : textOutput(options)
}

function textOutput({ write, writeError, seconds, colour }: OutputOptions): Output {
  const lastLines = createLastLines()
  const dim = (text: string): string => (colour ? `\u001b[2m${text}\u001b[22m` : text)
  return {
    event(agent, event) {
      if (event.type === 'job.started') {
        const model = event.model === undefined ? 'no model' : `model ${event.model}`
        write(`Which commit broke the test? ${event.commits} commits, ${event.agents} agents, ${model}.\n`)
        for (const note of event.notes) write(`${note}\n`)
        return
      }
      const told = { at: seconds(), agent, ...event } as JobEvent
      const line = describe(told) ?? lastLines.describe(told)
      if (line !== undefined) write(`${dim(`${seconds().toFixed(1)}s`)} ${line}\n`)
    },
    done({ file, reversalFile, traceId, earlierTraceIds, balance, sample }) {
      write(`Wrote ${file}${reversalFile === undefined ? '' : ` and ${reversalFile}`}; inputs untouched\n`)
      write(`${balanceLine(balance)} · ${[...earlierTraceIds, traceId].map((id) => `trace ${id}`).join(', then ')}\n`)
      write(sample ? 'Yours: npm run demo -- --repo . --good v1.2 --test "npm test"\n' : `Use it: git apply ${file}\n`)
    },
    failed({ kind, message, hint }) {
      writeError(`${message}\n${hint === '' ? '' : `${hint}\n`}`)
      writeError(`Nothing was written; inputs untouched (exit code ${EXIT_CODES[kind]})\n`)
    },
    stopped: () => writeError('Stopped; inputs untouched\n'),
  }
}

function balanceLine({ calls, succeeded, failed, cancelled, cutOff, failovers }: Balance): string {
  const parts = [
    `${succeeded} succeeded`,
    ...(cancelled > 0 ? [`${cancelled} cancelled`] : []),
    `${failed - cancelled} failed`,
    ...(cutOff > 0 ? [`${cutOff} cut off by the kill`] : []),
  ]
  return `${count(calls, 'call')}, ${parts.join(', ')}, ${count(failovers, 'failover')}`
}

function jsonOutput({ write, seconds }: OutputOptions): Output {
  const line = (value: object): void => write(`${JSON.stringify({ at: Number(seconds().toFixed(3)), ...value })}\n`)
  return {
    event: (agent, event) => line({ agent, ...event }),
    done: ({ file, reversalFile, traceId, earlierTraceIds, balance }) =>
      line({
        agent: 'team',
        type: 'done',
        file,
        ...(reversalFile === undefined ? {} : { reversalFile }),
        traceId,
        earlierTraceIds,
        ...balance,
        exitCode: 0,
      }),
    failed: ({ kind, message, hint }) =>
      line({ agent: 'team', type: 'failed', kind, message, hint, exitCode: EXIT_CODES[kind] }),
    stopped: (exitCode) => line({ agent: 'team', type: 'stopped', exitCode }),
  }
}
