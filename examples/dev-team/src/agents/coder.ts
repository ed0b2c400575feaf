import { randomUUID } from 'node:crypto'
import type { CallContext } from 'hermes-peer'
import { MAX_PATCH_BYTES, repair, review } from '../contracts.ts'
import { failure, isFailure } from '../failures.ts'
import { parentOf } from '../git/repository.ts'
import { addWorktree, type Worktree } from '../git/worktree.ts'
import { printable } from '../process/printable.ts'
import { countLines } from '../repair/change.ts'
import { allEdits, renderEdits } from '../repair/edits.ts'
import { modelEndpoint } from '../repair/proposal.ts'
import { reduceReversal } from '../repair/reduce-reversal.ts'
import { type Reversal, reverseCommit } from '../repair/reversal.ts'
import { runAgent } from './agent.ts'
import { coderConfig } from './config.ts'
import { proposeByModel } from './propose.ts'
import { createTestClient } from './test-client.ts'
import { toBase64 } from './wire.ts'

interface Plan {
  readonly correlationId: string
  readonly culprit: string
  readonly bad: string
  readonly reversal: Reversal
}

/** Plans that wait for their confirmation; the oldest goes first. */
const MAX_PLANS = 8

await runAgent({
  config: coderConfig,
  provide({ config, peer, report, work }) {
    const plans = new Map<string, Plan>()
    const client = createTestClient({ peer, work, timeoutMs: config.callTimeoutMs })
    const endpoint = modelEndpoint(process.env)
    let opened: Promise<Worktree> | undefined

    const makePlan = async (worktree: Worktree, input: { culprit: string; bad: string }, ctx: CallContext<typeof repair>) => {
      const { culprit, bad } = input
      const merge = (await parentOf(worktree.git, culprit, 2)) !== undefined
      const reversal = await reverseCommit(worktree, { culprit, bad, merge })
      const whole = renderEdits(reversal.files, allEdits(reversal.files))
      if (whole.length > MAX_PATCH_BYTES) throw failure('NO_REPAIR', 'The culprit changes too much to be reduced.', 'Look at it with `git show`.')
      const id = randomUUID()
      plans.set(id, { correlationId: ctx.correlationId, culprit, bad, reversal })
      for (const oldest of plans.keys()) if (plans.size > MAX_PLANS) plans.delete(oldest)
      const files = reversal.files.map(({ path }) => printable(path))
      return ctx.needConfirmation({
        plan: { id, culprit, files, lines: countLines(reversal.files), conflicts: reversal.conflicts.map((path) => printable(path)) },
      })
    }

    peer.provide(repair, async ({ culprit, bad, good, confirmed }, ctx) => {
      try {
        opened ??= addWorktree({ repository: config.repository, path: config.worktree, commit: bad })
        const worktree = await opened
        if (confirmed === undefined) return await makePlan(worktree, { culprit, bad }, ctx)
        const plan = plans.get(confirmed)
        if (plan?.correlationId !== ctx.correlationId || plan.culprit !== culprit || plan.bad !== bad) {
          throw failure('NO_REPAIR', 'The confirmed plan is not one of this interaction.', 'Ask for a plan first.')
        }
        plans.delete(confirmed)
        const found = await reduceReversal({
          worktree,
          bad,
          reversal: plan.reversal,
          client,
          signal: ctx.signal,
          maxTrials: config.maxTrials,
        })
        const { lines, files, trials, minimal } = found
        report({ type: 'repair.reduced', by: peer.agentId, lines, files, trials, minimal })
        const proposed =
          endpoint &&
          (await proposeByModel({
            endpoint,
            worktree,
            culprit,
            bad,
            reversal: plan.reversal,
            client,
            signal: ctx.signal,
            accept: async (patch) => (await peer.call(review, { commit: bad, good, patch: toBase64(patch) }, { timeoutMs: ctx.remainingMs() })).accepted,
          }))
        if (proposed) report({ type: 'repair.proposal', by: peer.agentId, accepted: proposed.patch !== undefined, note: proposed.note })
        return {
          patch: toBase64(found.patch),
          whole: toBase64(found.whole),
          lines,
          files: [...files],
          trials,
          minimal,
          ...(proposed?.patch ? { proposal: { patch: toBase64(proposed.patch), files: [...proposed.files] } } : {}),
          ...(proposed ? { proposalNote: proposed.note } : {}),
        }
      } catch (error) {
        if (!isFailure(error)) throw error
        throw ctx.error('NO_REPAIR', { message: printable(error.message, 900), hint: printable(error.hint, 900) })
      }
    })
  },
})
