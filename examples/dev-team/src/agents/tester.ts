import type { CallContext } from 'hermes-peer'
import { runTests, watchTests } from '../contracts.ts'
import { printable } from '../process/printable.ts'
import { runAgent } from './agent.ts'
import { testerConfig } from './config.ts'
import { createJudge, isNotTested, type Judged } from './judge.ts'
import { whileItRuns } from './while-it-runs.ts'
import { fromBase64 } from './wire.ts'

/** Sent of a failing run when it is asked for, characters. */
const EXCERPT = 4_000

await runAgent({
  config: testerConfig,
  provide({ config, peer, report }) {
    const judge = createJudge(config, report)

    peer.provide(runTests, async ({ commit, patch, excerpt }, ctx) => {
      const work = { commit, patch: patch === undefined ? undefined : fromBase64(patch) }
      const judged = await judge(work, ctx.signal).catch((error: unknown) => declared(ctx, error))
      return { ...verdict(judged), ...(excerpt && !judged.passed ? { excerpt: judged.output.slice(-EXCERPT) } : {}) }
    })
    peer.provide(watchTests, async function* ({ commit }, ctx) {
      const run = whileItRuns((onOutput) => judge({ commit }, ctx.signal, onOutput))
      try {
        return verdict(yield* run)
      } catch (error) {
        return declared(ctx, error)
      }
    })
  },
})

function verdict({ passed, durationMs, summary }: Judged) {
  return { passed, durationMs, summary }
}

/** Throws what the contracts declare for a run without a verdict, and anything else as it is. */
function declared(ctx: Pick<CallContext<typeof runTests | typeof watchTests>, 'error'>, error: unknown): never {
  if (!isNotTested(error)) throw error
  throw ctx.error('CANNOT_RUN', { reason: error.reason, detail: printable(error.detail, 500) })
}
