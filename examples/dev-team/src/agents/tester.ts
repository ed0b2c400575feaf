import type { CallContext } from 'hermes-peer'
import { type cannotRunReasons, runTests, watchTests } from '../contracts.ts'
import type { CommandResult, OnOutput } from '../process/command.ts'
import { printable } from '../process/printable.ts'
import { summarize } from '../process/summary.ts'
import { runAgent } from './agent.ts'
import { testerConfig } from './config.ts'
import { whileItRuns } from './while-it-runs.ts'
import { fromBase64 } from './wire.ts'
import { createWorkbench, isBenchProblem } from './workbench.ts'

/** Sent of a failing run when it is asked for, characters. */
const EXCERPT = 4_000

/** Exit codes by which a shell, and by convention a test script, says that it did not test. */
const NOT_TESTED = { 125: 'skipped', 126: 'command_not_found', 127: 'command_not_found' } as const

await runAgent({
  config: testerConfig,
  provide({ config, peer, report }) {
    const workbench = createWorkbench(config.bench)

    const judge = async (
      { commit, patch }: { commit: string; patch?: string | undefined },
      ctx: Pick<CallContext<typeof runTests | typeof watchTests>, 'signal' | 'error'>,
      onOutput?: OnOutput,
    ): Promise<{ result: CommandResult; told: { passed: boolean; durationMs: number; summary: string } }> => {
      const patched = patch !== undefined
      const state = { commit, ...(patched ? { patch: fromBase64(patch) } : {}) }
      try {
        const result = await workbench.use(state, ctx.signal, ({ run }) => {
          report({ type: 'run.started', commit, patched })
          // The command is this process's own; a message never brings one.
          return run(config.test, onOutput)
        })
        ctx.signal.throwIfAborted()
        const notTested = NOT_TESTED[result.code as keyof typeof NOT_TESTED]
        if (notTested !== undefined) throw cannotRun(ctx, notTested, summarize(result.output))
        const passed = result.code === 0
        report({ type: 'run.ended', commit, patched, passed, ms: result.durationMs })
        const summary = summaryOf(result, config.bench.limitMs)
        return { result, told: { passed, durationMs: Math.round(result.durationMs), summary } }
      } catch (error) {
        if (ctx.signal.aborted) report({ type: 'run.cancelled', commit, patched })
        if (isBenchProblem(error)) throw cannotRun(ctx, error.reason, error.detail)
        throw error
      }
    }

    peer.provide(runTests, async ({ commit, patch, excerpt }, ctx) => {
      const { result, told } = await judge({ commit, patch }, ctx)
      return { ...told, ...(excerpt && !told.passed ? { excerpt: result.output.slice(-EXCERPT) } : {}) }
    })
    peer.provide(watchTests, async function* ({ commit }, ctx) {
      const { told } = yield* whileItRuns((onOutput) => judge({ commit }, ctx, onOutput))
      return told
    })
  },
})

function cannotRun(
  ctx: Pick<CallContext<typeof runTests>, 'error'>,
  reason: (typeof cannotRunReasons)[number],
  detail: string,
): Error {
  return ctx.error('CANNOT_RUN', { reason, detail: printable(detail, 500) })
}

function summaryOf({ timedOut, code, output }: CommandResult, limitMs: number): string {
  if (timedOut) return `no end within ${Math.round(limitMs / 1000)} s`
  return code === undefined ? 'ended by a signal' : summarize(output)
}
