import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { review } from '../contracts.ts'
import type { CommandResult, OnOutput } from '../process/command.ts'
import { printable } from '../process/printable.ts'
import { summarize } from '../process/summary.ts'
import { runAgent } from './agent.ts'
import { reviewerConfig } from './config.ts'
import { whileItRuns } from './while-it-runs.ts'
import { fromBase64 } from './wire.ts'
import { type Bench, createWorkbench, isBenchProblem } from './workbench.ts'

await runAgent({
  config: reviewerConfig,
  provide({ config, peer }) {
    const workbench = createWorkbench(config.bench)
    const suite = ({ run }: Bench, onOutput?: OnOutput): Promise<CommandResult> => run(config.suite, onOutput)

    peer.provide(review, async function* ({ commit, good, patch }, ctx) {
      const patched = { commit, patch: fromBase64(patch) }
      try {
        const [whole, typed] = yield* whileItRuns((onOutput) =>
          workbench.use(patched, ctx.signal, (bench) => Promise.all([suite(bench, onOutput), checkTypes(bench)])),
        )
        ctx.signal.throwIfAborted()
        // A check that failed before the culprit, or without the patch, tells nothing about the patch.
        const suiteBefore = passed(whole) || (yield* alone(good, suite, ctx.signal))
        const typesBefore = passed(typed.result) || (yield* alone(commit, checkTypes, ctx.signal)).result
        ctx.signal.throwIfAborted()
        const suiteState = passed(whole) ? 'passed' : passed(suiteBefore) ? 'failed' : 'failed_before'
        const typesState = passed(typed.result) ? 'clean' : passed(typesBefore) ? 'errors' : 'errors_before'
        return {
          accepted: suiteState !== 'failed' && (typed.result === undefined || typesState !== 'errors'),
          suite: { state: suiteState, summary: summarize(whole.output) },
          types: { state: typed.result === undefined ? 'skipped' : typesState, summary: typed.summary },
        } as const
      } catch (error) {
        if (isBenchProblem(error)) throw ctx.error('CANNOT_REVIEW', { detail: printable(error.detail, 500) })
        throw error
      }
    })

    /** A check of a commit as it is, of which nothing but signs of life are streamed. */
    function alone<T>(commit: string, check: (bench: Bench) => Promise<T>, signal: AbortSignal) {
      return whileItRuns(() => workbench.use({ commit }, signal, (bench) => check(bench)))
    }
  },
})

async function checkTypes({ folder, run }: Bench): Promise<{ result?: CommandResult; summary: string }> {
  if (!existsSync(join(folder, 'tsconfig.json'))) return { summary: 'no tsconfig.json' }
  if (!existsSync(join(folder, 'node_modules', '.bin', 'tsc'))) return { summary: 'no tsc in node_modules' }
  const result = await run('tsc --noEmit -p .')
  return {
    result,
    summary: passed(result) ? 'types clean' : printable(result.output.split('\n').find(Boolean) ?? 'type errors', 300),
  }
}

function passed(result: CommandResult | boolean | undefined): boolean {
  return result === true || (typeof result === 'object' && result.code === 0)
}
