import type { CallContext } from 'hermes-peer'
import { type cannotRunReasons, runTests } from '../contracts.ts'
import type { CommandResult } from '../process/command.ts'
import { printable } from '../process/printable.ts'
import { summarize } from '../process/summary.ts'
import { runAgent } from './agent.ts'
import { testerConfig } from './config.ts'
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
    peer.provide(runTests, async ({ commit, patch, excerpt }, ctx) => {
      const patched = patch !== undefined
      const state = { commit, ...(patched ? { patch: fromBase64(patch) } : {}) }
      try {
        const result = await workbench.use(state, ctx.signal, ({ run }) => {
          report({ type: 'run.started', commit, patched })
          // The command is this process's own; a message never brings one.
          return run(config.test)
        })
        ctx.signal.throwIfAborted()
        const notTested = NOT_TESTED[result.code as keyof typeof NOT_TESTED]
        if (notTested !== undefined) throw cannotRun(ctx, notTested, summarize(result.output))
        const passed = result.code === 0
        report({ type: 'run.ended', commit, patched, passed, ms: result.durationMs })
        return {
          passed,
          durationMs: Math.round(result.durationMs),
          summary: told(result, config.bench.limitMs),
          ...(excerpt && !passed ? { excerpt: result.output.slice(-EXCERPT) } : {}),
        }
      } catch (error) {
        if (ctx.signal.aborted) report({ type: 'run.cancelled', commit, patched })
        if (isBenchProblem(error)) throw cannotRun(ctx, error.reason, error.detail)
        throw error
      }
    })
  },
})

function cannotRun(
  ctx: CallContext<typeof runTests>,
  reason: (typeof cannotRunReasons)[number],
  detail: string,
): Error {
  return ctx.error('CANNOT_RUN', { reason, detail: printable(detail, 500) })
}

function told({ timedOut, code, output }: CommandResult, limitMs: number): string {
  if (timedOut) return `no end within ${Math.round(limitMs / 1000)} s`
  return code === undefined ? 'ended by a signal' : summarize(output)
}
