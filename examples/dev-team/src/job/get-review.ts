import { isError, type Peer } from 'hermes-peer'
import type { WorkNames } from '../agents/forward-calls.ts'
import { patiently } from '../agents/patiently.ts'
import { askForReview } from '../agents/review-client.ts'
import { correlationId } from '../agents/wire.ts'
import { review } from '../contracts.ts'
import type { AgentEvent } from '../events.ts'
import { failure } from '../failures.ts'
import type { Notes } from './notes.ts'

/** Has a patch reviewed, unless an earlier life has, and tells what came out. Resolves with whether it is accepted. */
export async function getReview({
  peer,
  work,
  notes,
  report,
  of,
  commit,
  good,
  patch,
  timeoutMs,
  signal,
}: {
  peer: Peer
  work: WorkNames
  notes: Notes
  report: (event: AgentEvent) => void
  of: 'smallest' | 'whole'
  commit: string
  good: string
  patch: Uint8Array
  timeoutMs: number
  signal: AbortSignal
}): Promise<boolean> {
  const noted = notes.all('review').find((note) => note.of === of)
  if (noted !== undefined) return noted.accepted
  const id = correlationId()
  work.name(id, commit)
  const by = (): string => work.agentOf(id) ?? ''
  try {
    const ask = () =>
      askForReview(peer, { commit, good, patch }, { timeoutMs, signal, correlationId: id }, (piece) =>
        report({ type: 'run.output', by: by(), commit, ...piece }),
      )
    const { accepted, suite, types } = await patiently(ask, signal)
    notes.add({ note: 'review', of, accepted })
    report({
      type: 'review.done',
      by: by(),
      of,
      accepted,
      suite: suite.state === 'failed_before' ? `${suite.summary} (failed before the culprit too)` : suite.summary,
      types: types.state === 'skipped' ? `types not checked: ${types.summary}` : types.summary,
    })
    return accepted
  } catch (error) {
    if (!isError(error, review, 'CANNOT_REVIEW')) throw error
    throw failure('NO_REPAIR', `The reviewer could not work: ${error.data.detail}`, 'Check --suite and --setup.', error)
  } finally {
    work.forget(id)
  }
}
