import { repair, review } from '../contracts.ts'
import { isFailure } from '../failures.ts'
import { pairWorktrees } from '../git/pair-worktree.ts'
import { printable } from '../process/printable.ts'
import { countLines } from '../repair/change.ts'
import { createPlans } from '../repair/plans.ts'
import { modelEndpoint } from '../repair/proposal.ts'
import { reduceReversal } from '../repair/reduce-reversal.ts'
import { runAgent } from './agent.ts'
import { coderConfig } from './config.ts'
import { patiently } from './patiently.ts'
import { proposeByModel } from './propose.ts'
import { createTestClient } from './test-client.ts'
import { toBase64 } from './wire.ts'

await runAgent({
  config: coderConfig,
  provide({ config, peer, report, work }) {
    const plans = createPlans()
    const worktrees = pairWorktrees({ repository: config.repository, folder: config.folder })
    const client = createTestClient({ peer, work, timeoutMs: config.callTimeoutMs })
    const endpoint = modelEndpoint(process.env)
    const by = peer.agentId

    peer.provide(repair, async ({ culprit, bad, good, confirmed }, ctx) => {
      const { signal, correlationId } = ctx
      const task = { correlationId, culprit, bad }
      try {
        const worktree = await worktrees.open(culprit, bad)
        if (confirmed === undefined) {
          const { id, reversal } = await plans.make(task, worktree)
          return ctx.needConfirmation({
            plan: {
              id,
              culprit,
              lines: countLines(reversal.files),
              files: reversal.files.map(({ path }) => printable(path)),
              conflicts: reversal.conflicts.map((path) => printable(path)),
            },
          })
        }
        const { reversal } = plans.confirmed(confirmed, task)
        const found = await reduceReversal({ worktree, bad, reversal, client, signal, maxTrials: config.maxTrials })
        const { lines, files, trials, minimal } = found
        report({ type: 'repair.reduced', by, lines, files, trials, minimal })
        const answer = {
          patch: toBase64(found.patch),
          whole: toBase64(found.whole),
          lines,
          files: [...files],
          trials,
          minimal,
        }
        if (endpoint === undefined) return answer

        const accept = async (patch: Uint8Array): Promise<boolean> => {
          const ask = () =>
            peer.call(review, { commit: bad, good, patch: toBase64(patch) }, { timeoutMs: ctx.remainingMs(), signal })
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
      } catch (error) {
        if (!isFailure(error)) throw error
        throw ctx.error('NO_REPAIR', { message: printable(error.message, 900), hint: printable(error.hint, 900) })
      }
    })
  },
})
