import { isError, type Peer } from 'hermes-peer'
import type { WorkNames } from '../agents/forward-calls.ts'
import { patiently } from '../agents/patiently.ts'
import { correlationId, fromBase64 } from '../agents/wire.ts'
import { repair } from '../contracts.ts'
import type { AgentEvent } from '../events.ts'
import { failure } from '../failures.ts'

export interface Repaired {
  readonly smallest: Buffer
  /** The whole reversal. */
  readonly whole: Buffer
  /** A patch by a model that testers and reviewer have accepted. */
  readonly proposal: Buffer | undefined
}

/**
 * Asks for a repair, looks at the plan that comes back first, and confirms it in a second request of the same correlation.
 * Fails with `NO_REPAIR`.
 */
export async function getRepair({
  peer,
  work,
  report,
  culprit,
  good,
  bad,
  timeoutMs,
  signal,
}: {
  peer: Peer
  work: WorkNames
  report: (event: AgentEvent) => void
  culprit: string
  good: string
  bad: string
  timeoutMs: number
  signal: AbortSignal
}): Promise<Repaired> {
  const options = { correlationId: correlationId(), timeoutMs, signal }
  const input = { culprit, good, bad }
  work.name(options.correlationId, culprit)
  try {
    const first = await patiently(() => peer.request(repair, input, options), signal)
    if (first.status !== 'need_confirmation')
      throw failure('OTHER', `${first.agent} repaired without showing its plan.`)
    const plan = first.partialResult?.plan
    if (plan?.culprit !== culprit) throw failure('OTHER', `${first.agent} planned for another commit.`)
    const { lines, files, conflicts } = plan
    report({ type: 'repair.planned', by: first.agent, lines, files, conflicts })
    report({ type: 'repair.confirmed', by: first.agent, correlationId: first.correlationId })
    const confirmed = { ...input, confirmed: plan.id }
    const second = await patiently(() => peer.request(repair, confirmed, { ...options, agent: first.agent }), signal)
    if (second.output === undefined) throw failure('OTHER', `${second.agent} asks for a second confirmation.`)
    const { patch, whole, proposal } = second.output
    return {
      smallest: fromBase64(patch),
      whole: fromBase64(whole),
      proposal: proposal === undefined ? undefined : fromBase64(proposal),
    }
  } catch (error) {
    if (!isError(error, repair, 'NO_REPAIR')) throw error
    throw failure('NO_REPAIR', error.data.message, error.data.hint, error)
  } finally {
    work.forget(options.correlationId)
  }
}
