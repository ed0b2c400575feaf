import {
  decodePayload,
  encodePayload,
  HermesError,
  MAX_HOPS,
  MAX_LIFE_MS,
  messageIdOf,
  newMessageId,
  readRequestPayload,
  readTaskCancelOutput,
  type TaskState,
  taskIdOf,
} from '@hermes-peer/protocol'
import type { Clock } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Incoming } from '../../delivery/inbox.ts'
import type { CallGuard } from '../../policy/guard.ts'
import type { Random } from '../../random.ts'
import type { Router } from '../../routing/router.ts'
import { onAbort } from '../../signals.ts'
import type { Ledger } from '../../telemetry/balance.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import { readReply } from '../answer.ts'
import { type CallSpec, notStarted } from '../call.ts'
import { checkOwnPolicy } from '../own-policy.ts'
import type { DraftEnds, Drafts } from './drafts.ts'
import type { OwnTask, OwnTasks } from './own-tasks.ts'
import type { DurableDraft } from './stored-draft.ts'

export interface SubmitterOptions {
  readonly drafts: Pick<Drafts, 'add' | 'sent' | 'takeBack'>
  readonly own: OwnTasks
  readonly router: Router
  readonly policy: CallGuard
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly ledger: Ledger
  reach(agentId: string, signal: AbortSignal): Promise<unknown>
}

/** Hands tasks over, and cancels them. */
export interface Submitter {
  /** Resolves once an agent has stored it, or at the deadline of the spec while nobody has. Rejects where nobody will. */
  submit(spec: CallSpec, signal: AbortSignal | undefined): Promise<OwnTask>
  /**
   * Takes a task back that nobody has acknowledged. Undefined when only its agent can tell what becomes of it; where it may be on
   * its way, a cancel follows it for as long as it may live. Rejects with `STORAGE_FAILED`: then nothing is taken back.
   */
  withdraw(task: OwnTask): Promise<TaskState | undefined>
  /**
   * Sends an event until it is stored over there or expires. Resolves with true once it is, with false when `stop` fires before:
   * it is then still sent. Rejects when it is refused.
   */
  emit(draft: DurableDraft, stop: AbortSignal): Promise<boolean>
  /** Takes in what the agent said when the task was cancelled there. */
  settle(task: OwnTask, state: TaskState): void
  /** What the outbox tells of its drafts. */
  readonly ends: DraftEnds
}

const CANCEL = 'hermes.task.cancel'

/** How the agent that a submit went to has taken it. */
type Taken =
  | { readonly is: 'acknowledged' }
  | { readonly is: 'refused'; readonly error: HermesError; readonly attempts: number }

export function createSubmitter(options: SubmitterOptions): Submitter {
  const { drafts, own, router, policy, clock, random, tunables, telemetry, ledger, reach } = options
  // A day at most is taken, by a clock that is known to the other side only so well.
  const lifeMs = MAX_LIFE_MS - tunables.maxClockOffsetMs
  /** Submits of this life that are still waited for, by message id. */
  const waiting = new Map<string, (taken: Taken) => void>()

  /** To that agent, and to no other while its word is awaited: what is written there may be stored there. */
  const offer = async (spec: CallSpec, agentId: string, stop: AbortSignal): Promise<Taken | 'unanswered'> => {
    const now = clock.now()
    const task: OwnTask = {
      taskId: taskIdOf(spec.messageId),
      agentId,
      capability: spec.capability,
      traceId: spec.traceId,
      until: now + 2 * MAX_LIFE_MS,
      acknowledged: false,
      rejected: undefined,
    }
    const draft: DurableDraft = {
      agentId,
      messageId: spec.messageId,
      type: 'submit',
      capability: spec.capability,
      payload: spec.payload,
      correlationId: spec.correlationId,
      traceId: spec.traceId,
      priority: spec.priority,
      path: spec.path,
      ...(spec.maxHops === undefined ? {} : { maxHops: spec.maxHops }),
      ...(spec.delegation === undefined ? {} : { delegation: spec.delegation }),
      timeoutMs: Math.max(1, Math.ceil(spec.deadline - clock.monotonic())),
      expiresAt: now + lifeMs,
    }
    let taken = (_: Taken | 'unanswered'): void => undefined
    const answer = new Promise<Taken | 'unanswered'>((resolve) => {
      taken = resolve
    })
    waiting.set(spec.messageId, taken)
    const release = onAbort(stop, () => taken('unanswered'))
    spec.reached?.(agentId)
    try {
      await drafts.add(draft, [own.add(task)])
      return await answer
    } catch (error) {
      await own.remove(task.taskId)
      throw error
    } finally {
      release()
      waiting.delete(spec.messageId)
    }
  }

  const candidates = async (spec: CallSpec, signal: AbortSignal): Promise<readonly string[]> => {
    // An agent that is named is sent it whether or not it can be reached now: that is what the outbox is for.
    if (spec.agent !== undefined) {
      checkOwnPolicy(policy, spec.agent, spec.capability, spec.input)
      return [spec.agent]
    }
    const { capability, where, intent, sla, input, path, correlationId } = spec
    const kept = await router.choose(
      {
        capability,
        input,
        path,
        correlationId,
        ...(where === undefined ? {} : { where }),
        ...(intent === undefined ? {} : { intent }),
        ...(sla === undefined ? {} : { sla }),
      },
      { signal },
    )
    return kept.map(({ agentId }) => agentId)
  }

  const submit = async (spec: CallSpec, signal: AbortSignal | undefined): Promise<OwnTask> => {
    const taskId = taskIdOf(spec.messageId)
    const stop = new AbortController()
    const timer = clock.after(Math.max(0, spec.deadline - clock.monotonic()), () =>
      stop.abort(new HermesError('TIMEOUT', { message: `nobody took ${spec.capability} within ${spec.timeoutMs} ms` })),
    )
    const release = signal
      ? onAbort(signal, () => stop.abort(HermesError.from(signal.reason, 'CANCELLED')))
      : () => undefined
    try {
      let last: HermesError | undefined
      for (const agentId of await candidates(spec, stop.signal)) {
        if (stop.signal.aborted) break
        if (spec.agent === undefined) {
          try {
            await reach(agentId, stop.signal)
          } catch (error) {
            last = HermesError.from(error, 'PEER_UNREACHABLE')
            continue
          }
        }
        const taken = await offer(spec, agentId, stop.signal)
        const task = own.get(taskId)
        if (signal?.aborted) {
          if (task) await withdraw(task)
          throw stop.signal.reason
        }
        if (taken === 'unanswered' || taken.is === 'acknowledged') {
          if (task) return task
          throw new HermesError('QUEUE_FULL', { message: 'too many tasks are remembered here' })
        }
        last = taken.error
        await own.remove(taskId)
        // Of several attempts another may have come in before the rules changed.
        const elsewhere =
          last.code === 'CAPABILITY_NOT_FOUND' || (last.code === 'POLICY_DENIED' && taken.attempts === 1)
        if (!last.retryable && !(notStarted(last) && elsewhere)) break
      }
      if (stop.signal.aborted) {
        const reason = HermesError.from(stop.signal.reason)
        throw last && reason.code === 'TIMEOUT'
          ? reason.with({
              message: `${reason.message}; the last one ended with ${last.code}: ${last.message}`,
              cause: last,
            })
          : reason
      }
      throw last ?? new HermesError('NO_CANDIDATE')
    } finally {
      clock.clear(timer)
      release()
    }
  }

  /** Tasks that are being taken back. */
  const withdrawing = new Map<string, Promise<TaskState | undefined>>()

  const withdraw = (task: OwnTask): Promise<TaskState | undefined> => {
    const { taskId } = task
    const going = withdrawing.get(taskId) ?? takeBack(task).finally(() => withdrawing.delete(taskId))
    withdrawing.set(taskId, going)
    return going
  }

  const takeBack = async (task: OwnTask): Promise<TaskState | undefined> => {
    if (task.acknowledged) return undefined
    if (task.rejected) return 'cancelled'
    const messageId = messageIdOf(task.taskId)
    const sent = drafts.sent(messageId)
    if (sent === undefined) return undefined
    if (!sent) {
      const rejected = new HermesError('CANCELLED', { message: 'the task was cancelled before it was sent' })
      await drafts.takeBack(messageId, { beside: [own.change({ ...task, rejected })] })
      task.rejected = rejected
      own.changed(task.taskId)
      return 'cancelled'
    }
    // It may have arrived, and be under way: it is cancelled over there, whenever that agent can be reached.
    const bytes = (length: number) => random.bytes(length)
    const instead: DurableDraft = {
      agentId: task.agentId,
      messageId: newMessageId(bytes),
      type: 'request',
      capability: CANCEL,
      payload: encodePayload('application/json', { input: { task_id: task.taskId } }),
      correlationId: undefined,
      traceId: task.traceId,
      priority: 5,
      path: [],
      maxHops: MAX_HOPS,
      timeoutMs: tunables.callTimeoutMs,
      expiresAt: clock.now() + lifeMs,
    }
    await drafts.takeBack(messageId, { instead })
    return undefined
  }

  /** What the agent has made of a cancel: it knows now whether there was anything to cancel. */
  const cancelled = (draft: DurableDraft, answer: Incoming): void => {
    const { input } = readRequestPayload(decodePayload('application/json', draft.payload))
    const task = own.get((input as { task_id: string }).task_id)
    if (!task) return
    let state: TaskState
    try {
      const reply = readReply(answer)
      if (reply.kind === 'error') return
      state = readTaskCancelOutput(reply.response.output).state
    } catch {
      // It was answered: what became of it is told by its news, if that agent can tell at all.
      return
    }
    settle(task, state)
  }

  const settle = (task: OwnTask, state: TaskState): void => {
    if (state === 'cancelled') task.rejected = new HermesError('CANCELLED', { message: 'the task was cancelled' })
    else task.acknowledged = true
    void own.save(task)
    own.changed(task.taskId)
  }

  const emit = async (draft: DurableDraft, stop: AbortSignal): Promise<boolean> => {
    let release = (): void => undefined
    try {
      const taken = new Promise<Taken | 'unanswered'>((resolve) => {
        waiting.set(draft.messageId, resolve)
        release = onAbort(stop, () => resolve('unanswered'))
      })
      await drafts.add(draft)
      const how = await taken
      if (how !== 'unanswered' && how.is === 'refused') throw how.error
      return how !== 'unanswered'
    } finally {
      release()
      waiting.delete(draft.messageId)
    }
  }

  return {
    emit,
    async submit(spec, signal) {
      ledger.begin()
      try {
        const task = await submit(spec, signal)
        ledger.end(true)
        return task
      } catch (thrown) {
        ledger.end(false)
        throw HermesError.from(thrown).with({ messageId: spec.messageId, traceId: spec.traceId })
      }
    },
    withdraw,
    settle,
    ends: {
      settled(draft, answer) {
        if (draft.type === 'request') cancelled(draft, answer)
        if (draft.type === 'event') waiting.get(draft.messageId)?.({ is: 'acknowledged' })
        if (draft.type !== 'submit') return
        const taskId = taskIdOf(draft.messageId)
        const task = own.get(taskId)
        if (task && !task.acknowledged) {
          task.acknowledged = true
          void own.save(task)
          const ids = { messageId: draft.messageId, correlationId: draft.correlationId, traceId: draft.traceId }
          telemetry.emit('task.acknowledged', { ...ids, taskId, agentId: draft.agentId })
        }
        waiting.get(draft.messageId)?.({ is: 'acknowledged' })
        own.changed(taskId)
      },
      refused(draft, error, attempts) {
        if (draft.type !== 'submit') {
          if (error.retryable && clock.now() < draft.expiresAt) return 'keep'
          waiting.get(draft.messageId)?.({ is: 'refused', error, attempts })
          return 'drop'
        }
        // Of several attempts another may be under way there, or be stored with its ack lost: to ask elsewhere could have it done
        // twice.
        const elsewhere = error.retryable || error.code === 'CAPABILITY_NOT_FOUND'
        if (attempts > 1 && elsewhere && clock.now() < draft.expiresAt) return 'keep'
        const waiter = waiting.get(draft.messageId)
        if (waiter) {
          waiter({ is: 'refused', error, attempts })
          return 'drop'
        }
        // Nobody chooses another agent any more: this one is asked until it has room, or until it is too late.
        if (error.retryable && clock.now() < draft.expiresAt) return 'keep'
        const task = own.get(taskIdOf(draft.messageId))
        if (task) {
          task.rejected = error
          void own.save(task)
          own.changed(task.taskId)
        }
        return 'drop'
      },
    },
  }
}
