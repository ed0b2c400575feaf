import type { cannotRunReasons } from '../contracts.ts'
import type { AgentEvent } from '../events.ts'
import type { CommandResult, OnOutput } from '../process/command.ts'
import { summarize } from '../process/summary.ts'
import type { TesterConfig } from './config.ts'
import { createWorkbench, isBenchProblem } from './workbench.ts'

/** Exit codes by which a shell, and by convention a test script, says that it did not test. */
const NOT_TESTED = { 125: 'skipped', 126: 'command_not_found', 127: 'command_not_found' } as const

export interface Judged {
  readonly passed: boolean
  readonly durationMs: number
  readonly summary: string
  /** The end of what the test wrote. */
  readonly output: string
}

/** Runs the test on a commit, with a patch on top. Throws {@link isNotTested} values where that gives no verdict. */
export type Judge = (
  work: { commit: string; patch?: Uint8Array | undefined },
  signal: AbortSignal,
  onOutput?: OnOutput,
) => Promise<Judged>

/** Why there is no verdict. */
export interface NotTested {
  readonly reason: (typeof cannotRunReasons)[number]
  readonly detail: string
}

class NotTestedError extends Error implements NotTested {
  readonly reason: NotTested['reason']
  readonly detail: string

  constructor({ reason, detail }: NotTested) {
    super(detail)
    this.reason = reason
    this.detail = detail
  }
}

export function isNotTested(value: unknown): value is NotTested {
  return value instanceof NotTestedError
}

export function createJudge(config: Pick<TesterConfig, 'bench' | 'test'>, report: (event: AgentEvent) => void): Judge {
  const workbench = createWorkbench(config.bench)
  return async ({ commit, patch }, signal, onOutput) => {
    const patched = patch !== undefined
    try {
      const result = await workbench.use({ commit, ...(patched ? { patch } : {}) }, signal, ({ run }) => {
        report({ type: 'run.started', commit, patched })
        // The command is this process's own; a message never brings one.
        return run(config.test, onOutput)
      })
      signal.throwIfAborted()
      const reason = NOT_TESTED[result.code as keyof typeof NOT_TESTED]
      if (reason !== undefined) throw new NotTestedError({ reason, detail: summarize(result.output) })
      const passed = result.code === 0
      report({ type: 'run.ended', commit, patched, passed, ms: result.durationMs })
      const summary = summaryOf(result, config.bench.limitMs)
      return { passed, durationMs: Math.round(result.durationMs), summary, output: result.output }
    } catch (error) {
      if (signal.aborted) report({ type: 'run.cancelled', commit, patched })
      throw isBenchProblem(error) ? new NotTestedError(error) : error
    }
  }
}

function summaryOf({ timedOut, code, output }: CommandResult, limitMs: number): string {
  if (timedOut) return `no end within ${Math.round(limitMs / 1000)} s`
  return code === undefined ? 'ended by a signal' : summarize(output)
}
