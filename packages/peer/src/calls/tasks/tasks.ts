import { type Capability, HermesError, ID_PATTERNS, MAX_LIFE_MS, newTraceId } from '@hermes-peer/protocol'
import type { TaskHandle } from '../../api.ts'
import type { CallGuard } from '../../policy/guard.ts'
import type { Router } from '../../routing/router.ts'
import type { Ledger } from '../../telemetry/balance.ts'
import type { CallSpec } from '../call.ts'
import type { AskRuntime } from '../system.ts'
import { createDrafts, type Drafts, type DraftsOptions } from './drafts.ts'
import { createOwnTasks } from './own-tasks.ts'
import { createSubmitter, type Submitter } from './submitter.ts'
import { createTaskHandle } from './task-handle.ts'

export interface TasksOptions extends Omit<DraftsOptions, 'ends'> {
  readonly router: Router
  readonly policy: CallGuard
  readonly ledger: Ledger
  readonly ask: AskRuntime
}

/** The caller's side of tasks. */
export interface Tasks {
  /** Takes up what an earlier life has left, and goes on sending it. */
  start(): Promise<void>
  submit(contract: Capability, spec: CallSpec, signal: AbortSignal | undefined): Promise<TaskHandle>
  /** As `Submitter.emit`. */
  emit: Submitter['emit']
  /** The handle of a task submitted earlier. Throws `INVALID_OPTION`, `TASK_NOT_FOUND`. */
  handle(contract: Capability, taskId: string, agentId: string | undefined): TaskHandle
  linked(agentId: string): void
  sweep(): void
  stop(reason: HermesError): void
}

/** Tasks of ours that are remembered; each is a few hundred bytes. */
const MOST_OWN = 50_000

export function createTasks(options: TasksOptions): Tasks {
  const { clock, random, tunables, telemetry, journal, router, ledger, ask, reach } = options
  const life = new AbortController()
  const own = createOwnTasks({
    journal,
    most: MOST_OWN,
    failed: (what, cause) => telemetry.emit('journal.failed', { what, cause }),
  })
  // The drafts tell the submitter what became of them, and it hands new ones to them.
  let drafts: Drafts | undefined
  const submitter = createSubmitter({
    drafts: {
      add: (draft, beside) => (drafts as Drafts).add(draft, beside),
      sent: (messageId) => (drafts as Drafts).sent(messageId),
      takeBack: (messageId, change) => (drafts as Drafts).takeBack(messageId, change),
    },
    own,
    router,
    policy: options.policy,
    clock,
    random,
    tunables,
    telemetry,
    ledger,
    reach,
  })
  drafts = createDrafts({ ...options, ends: submitter.ends })
  const common = { own, submitter, ask, clock, random, tunables, telemetry, life: life.signal, reach }

  return {
    async start() {
      await own.load()
      await drafts.load()
    },
    async submit(contract, spec, signal) {
      return createTaskHandle({ ...common, contract, task: await submitter.submit(spec, signal) })
    },
    emit: submitter.emit,
    handle(contract, taskId, agentId) {
      if (!ID_PATTERNS.task_id.test(taskId)) {
        throw new HermesError('INVALID_OPTION', {
          message: `id: ${JSON.stringify(taskId)?.slice(0, 80)} is not the id of a task`,
          hint: 'Give what the handle of submit() has as its id.',
          details: { field: 'id' },
        })
      }
      const known = own.get(taskId)
      if (known && known.capability !== contract.name) {
        throw new HermesError('INVALID_OPTION', {
          message: `contract: ${taskId} was submitted to ${known.capability}, not to ${contract.name}`,
          details: { field: 'contract' },
        })
      }
      if (!known && agentId === undefined) {
        throw new HermesError('TASK_NOT_FOUND', {
          message: `this peer's journal does not know ${taskId}`,
          hint: 'Name the agent that works on it, or give the peer the journal that it was submitted with.',
        })
      }
      const task = known ?? {
        taskId,
        agentId: agentId as string,
        capability: contract.name,
        traceId: newTraceId((length) => random.bytes(length)),
        until: clock.now() + MAX_LIFE_MS,
        acknowledged: true,
        rejected: undefined,
      }
      return createTaskHandle({ ...common, contract, task })
    },
    linked: (agentId) => drafts.linked(agentId),
    sweep: () => own.sweep(clock.now()),
    stop(reason) {
      life.abort(reason)
      drafts.stop()
    },
  }
}
