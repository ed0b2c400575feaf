import { isError, type Peer } from 'hermes-peer'
import { patiently } from '../agents/patiently.ts'
import { toBase64 } from '../agents/wire.ts'
import { review } from '../contracts.ts'
import type { AgentEvent } from '../events.ts'
import { failure } from '../failures.ts'

/** Has a patch reviewed and tells what came out. Resolves with whether it is accepted. */
export async function getReview({
  peer,
  report,
  of,
  commit,
  good,
  patch,
  timeoutMs,
  signal,
}: {
  peer: Peer
  report: (event: AgentEvent) => void
  of: 'smallest' | 'whole'
  commit: string
  good: string
  patch: Uint8Array
  timeoutMs: number
  signal: AbortSignal
}): Promise<boolean> {
  try {
    const ask = () => peer.request(review, { commit, good, patch: toBase64(patch) }, { timeoutMs, signal })
    const { output, agent } = await patiently(ask, signal)
    if (output === undefined) throw failure('OTHER', `${agent} gave no review.`)
    const { accepted, suite, types } = output
    report({
      type: 'review.done',
      by: agent,
      of,
      accepted,
      suite: suite.state === 'failed_before' ? `${suite.summary} (failed before the culprit too)` : suite.summary,
      types: types.state === 'skipped' ? `types not checked: ${types.summary}` : types.summary,
    })
    return accepted
  } catch (error) {
    if (!isError(error, review, 'CANNOT_REVIEW')) throw error
    throw failure('NO_REPAIR', `The reviewer could not work: ${error.data.detail}`, 'Check --suite and --setup.', error)
  }
}
