import { createTurns } from '../concurrency/turns.ts'
import { repair } from '../contracts.ts'
import { isFailure } from '../failures.ts'
import { pairWorktrees } from '../git/pair-worktree.ts'
import { printable } from '../process/printable.ts'
import { countLines } from '../repair/change.ts'
import { planReversal } from '../repair/plan.ts'
import { modelEndpoint } from '../repair/proposal.ts'
import { reduceReversal } from '../repair/reduce-reversal.ts'
import { runAgent } from './agent.ts'
import { coderConfig } from './config.ts'
import { patiently } from './patiently.ts'
import { proposeByModel } from './propose.ts'
import { askForReview } from './review-client.ts'
import { createTestClient } from './test-client.ts'
import { toBase64 } from './wire.ts'

/** Share of the work when the plan is made, and when the patch is as small as it gets: a model may still propose another. */
const PLANNED = 0.1
const REDUCED = 0.9

await runAgent({
  config: coderConfig,
  provide({ config, peer, report, work }) {
    const worktrees = pairWorktrees({ repository: config.repository, folder: config.folder })
    const turns = createTurns()
    const client = createTestClient({ peer, work, timeoutMs: config.callTimeoutMs })
    const endpoint = modelEndpoint(process.env)
    const by = peer.agentId

    peer.provide(repair, async ({ culprit, bad, good }, ctx) => {
      const { signal } = ctx
      try {
        const worktree = await worktrees.open(culprit, bad)
        const reversal = await turns.take(signal, () => planReversal(worktree, { culprit, bad }))
        const { approved } = await ctx.ask({
          culprit,
          lines: countLines(reversal.files),
          files: reversal.files.map(({ path }) => printable(path)),
          conflicts: reversal.conflicts.map((path) => printable(path)),
        })
        if (!approved) throw ctx.error('NO_REPAIR', { message: 'The plan was not approved.', hint: '' })
        return await turns.take(signal, async () => {
          const { maxTrials } = config
          const found = await reduceReversal({
            worktree,
            bad,
            reversal,
            client,
            signal,
            maxTrials,
            progress: (share, note) => ctx.progress(percent(PLANNED + share * (REDUCED - PLANNED)), note),
          })
          const { lines, files, trials, minimal, whole } = found
          report({ type: 'repair.reduced', by, lines, files, trials, minimal })
          const answer = {
            patch: toBase64(found.patch),
            ...(whole === undefined ? {} : { whole: toBase64(whole) }),
            lines,
            files: [...files],
            trials,
            minimal,
          }
          if (endpoint === undefined) return answer

          ctx.progress(REDUCED, 'a model is asked for another patch')
          const accept = async (proposed: Uint8Array): Promise<boolean> => {
            const asked = { commit: bad, good, patch: proposed }
            const ask = () => askForReview(peer, asked, { timeoutMs: ctx.remainingMs(), signal })
            return (await patiently(ask, signal)).accepted
          }
          const { patch, note } = await proposeByModel({
            endpoint,
            worktree,
            culprit,
            bad,
            reversal,
            client,
            accept,
            signal,
          })
          report({ type: 'repair.proposal', by, accepted: patch !== undefined, note })
          return patch === undefined ? answer : { ...answer, proposal: toBase64(patch) }
        })
      } catch (error) {
        if (!isFailure(error)) throw error
        throw ctx.error('NO_REPAIR', { message: printable(error.message, 900), hint: printable(error.hint, 900) })
      }
    })
  },
})

function percent(fraction: number): number {
  return Math.round(fraction * 100) / 100
}
