import { isError, isHermesError, type Peer, type TaskHandle, type TaskQuestionOf } from 'hermes-peer'
import { patiently } from '../agents/patiently.ts'
import { fromBase64 } from '../agents/wire.ts'
import { repair } from '../contracts.ts'
import type { AgentEvent } from '../events.ts'
import { failure } from '../failures.ts'
import type { Notes } from './notes.ts'

export interface Repaired {
  readonly smallest: Buffer
  /** The whole reversal, where it is small enough to be sent. */
  readonly whole: Buffer | undefined
  /** A patch by a model that testers and reviewer have accepted. */
  readonly proposal: Buffer | undefined
}

export interface GetRepairOptions {
  readonly peer: Pick<Peer, 'submit' | 'task'>
  readonly notes: Notes
  readonly report: (event: AgentEvent) => void
  readonly culprit: string
  readonly good: string
  readonly bad: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** For telling a coder that its work is not wanted any more, ms: whoever stops this agent waits 3 s. */
const CANCEL_MS = 500

/**
 * Hands the repair over as a task, or takes up the one that an earlier life has handed over; looks at its plan, approves it,
 * and follows it to its end. Fails with `NO_REPAIR`, and cancels the task when it is not waited for any longer.
 */
export async function getRepair(options: GetRepairOptions): Promise<Repaired> {
  const { notes, report, timeoutMs, signal } = options
  const task = await handedOver(options)
  const wait = { timeoutMs, signal }
  try {
    for await (const update of task.updates({ ...wait, after: notes.last('news')?.n ?? 0 })) {
      // An answer that a kill has kept from being given is given by the next life.
      const questions = update.type === 'question' ? [update] : update.type === 'snapshot' ? update.questions : []
      for (const question of questions) await consider(question, task, options)
      notes.add({ note: 'news', n: update.n })
      // Of news that were missed the last counts, as it stands in a snapshot.
      const told = update.type === 'progress' || update.type === 'snapshot' ? update : undefined
      if (told?.fraction !== undefined) {
        report({ type: 'repair.progress', by: task.agent, fraction: told.fraction, note: told.note ?? '' })
      }
    }
    const { patch, whole, proposal } = await task.result(wait)
    return {
      smallest: fromBase64(patch),
      whole: whole === undefined ? undefined : fromBase64(whole),
      proposal: proposal === undefined ? undefined : fromBase64(proposal),
    }
  } catch (error) {
    if (isError(error, repair, 'NO_REPAIR')) throw failure('NO_REPAIR', error.data.message, error.data.hint, error)
    // For the job it is over; the task itself would go on without us.
    await task.cancel({ timeoutMs: CANCEL_MS }).catch(() => {})
    throw error
  }
}

async function handedOver({ peer, notes, report, culprit, good, bad, signal }: GetRepairOptions): Promise<RepairTask> {
  const noted = notes.last('task')
  if (noted !== undefined) return peer.task(repair, noted.id)
  const task = await patiently(() => peer.submit(repair, { culprit, good, bad }, { signal }), signal)
  // Killed just before this line, the next life hands it over again; the first one then waits for an answer in vain.
  notes.add({ note: 'task', id: task.id, agent: task.agent })
  report({ type: 'repair.submitted', to: task.agent, taskId: task.id, commit: culprit })
  return task
}

type RepairTask = TaskHandle<typeof repair>

/** Approves a plan for the commit that was asked about. */
async function consider(
  { question, answer }: Pick<TaskQuestionOf<typeof repair>, 'question' | 'answer'>,
  task: RepairTask,
  { report, culprit }: GetRepairOptions,
): Promise<void> {
  const { lines, files, conflicts } = question
  if (question.culprit !== culprit) throw failure('OTHER', `${task.agent} planned for another commit.`)
  report({ type: 'repair.planned', by: task.agent, lines, files, conflicts })
  try {
    await answer({ approved: true })
  } catch (error) {
    // An answer of an earlier life has arrived, and the work has gone on.
    if (!isHermesError(error) || error.code !== 'TASK_NOT_WAITING') throw error
  }
  report({ type: 'repair.confirmed', by: task.agent, taskId: task.id })
}
