import { capability, HermesError, type Peer, type TaskHandle } from 'hermes-peer'
import { z } from 'zod'
import type { WorkContext } from '../stage.ts'
import { BOUNDS } from './bounds.ts'

const input = z.object({ id: z.string(), ms: z.number(), ask: z.boolean() })
const output = z.object({ id: z.string(), by: z.string() })
const common = {
  input,
  output,
  errors: { REFUSED: z.object({ id: z.string() }) },
  asks: { question: z.object({ id: z.string() }), answer: z.object({ go: z.literal(true) }) },
  constraints: { maxConcurrency: BOUNDS.concurrency.task_none },
}

/** Long work of either kind of effects; all peers take all of it. */
export const TASKS = {
  none: capability('task_none', { description: 'Does simulated long work.', ...common, effects: 'none' }),
  once: capability('task_once', { description: 'Does simulated long work, never twice.', ...common, effects: 'once' }),
} as const

export type TaskEffects = keyof typeof TASKS

/** One task that the workload has submitted, as its owner has seen it in all of its lives. */
export interface MadeTask {
  readonly id: string
  readonly from: string
  readonly effects: TaskEffects
  /** Virtual ms. */
  readonly at: number
  taskId: string | undefined
  agent: string | undefined
  acknowledged: boolean
  /** Why it was not taken at all. */
  refused: string | undefined
  /** What its owner was told instead of its end, when following it failed: nothing may do that. */
  notTold: string | undefined
  /** The owner's process died before it was handed over or refused. */
  orphaned: boolean
  /** Ends that its owner was told, in any life, with when. */
  readonly ends: { state: string; at: number }[]
  /** Numbers of the updates of each time that it was followed. */
  readonly followed: number[][]
}

export interface TaskContext extends WorkContext {
  readonly tasks: MadeTask[]
  readonly agents: readonly string[]
}

export function provideTasks(peer: Peer, context: WorkContext): void {
  const { random } = context
  for (const effects of ['none', 'once'] as const) {
    peer.provide(TASKS[effects], async ({ id, ms, ask }, ctx) => {
      context.ran({ id, agentId: peer.agentId, messageId: ctx.messageId, caller: ctx.caller })
      for (let step = 1; step <= 3; step++) {
        await context.sleep(peer.agentId, ms / 3, ctx.signal)
        ctx.progress(step / 3, id)
      }
      // An owner that is gone answers nothing: the work goes on without it.
      if (ask) await Promise.race([ctx.ask({ id }), context.sleep(peer.agentId, 4_000, ctx.signal)])
      if (random.chance(0.05)) throw ctx.error('REFUSED', { id })
      return { id, by: peer.agentId }
    })
  }
}

/** Submits one task drawn from `random`, follows it, and now and then cancels it. */
export function submitTask(peer: Peer, context: TaskContext, to?: string): void {
  const { random, tasks, agents } = context
  const effects = random.pick(['none', 'once'] as const)
  const id = `${peer.agentId}-task-${tasks.length}`
  const agent = to ?? (random.chance(0.4) ? random.pick(agents.filter((other) => other !== peer.agentId)) : undefined)
  const cancelAfter = random.chance(0.12) ? random.int(1, 3_000) : undefined
  const made: MadeTask = {
    id,
    from: peer.agentId,
    effects,
    at: context.now(),
    taskId: undefined,
    agent: undefined,
    acknowledged: false,
    refused: undefined,
    notTold: undefined,
    orphaned: false,
    ends: [],
    followed: [],
  }
  tasks.push(made)
  context.asked(id, peer.agentId)
  const input = {
    id,
    ms: to ? random.pick([1_500, 4_000]) : random.pick([0, 30, 300, 1_500, 4_000]),
    ask: random.chance(0.15),
  }
  const timeoutMs = random.pick([500, 3_000, 10_000])
  peer
    .submit(TASKS[effects], input, { timeoutMs, ...(agent === undefined ? {} : { agent }) })
    .then((handle) => {
      made.taskId = handle.id
      made.agent = handle.agent
      follow(handle, made, context)
      if (cancelAfter !== undefined) {
        void context
          .sleep(peer.agentId, cancelAfter, new AbortController().signal)
          .then(() => handle.cancel())
          .catch(() => undefined)
      }
    })
    .catch((thrown: unknown) => {
      const { code } = HermesError.from(thrown)
      // The process that asked is gone, and with it whoever could be told.
      if (code !== 'STOPPED') made.refused = code
    })
}

/** Follows a task to its end, answers what it asks, and notes what its owner is told. */
export function follow(handle: TaskHandle<(typeof TASKS)[TaskEffects]>, made: MadeTask, context: WorkContext): void {
  const numbers: number[] = []
  made.followed.push(numbers)
  const told = async (): Promise<void> => {
    for await (const update of handle.updates()) {
      numbers.push(update.n)
      if (update.type === 'question') void update.answer({ go: true }).catch(() => undefined)
      if (update.type === 'snapshot')
        for (const open of update.questions) void open.answer({ go: true }).catch(() => undefined)
      if (update.type === 'end') made.ends.push({ state: update.state, at: context.now() })
    }
  }
  told().catch((thrown: unknown) => {
    const { code } = HermesError.from(thrown)
    if (code === 'CANCELLED') made.ends.push({ state: 'withdrawn', at: context.now() })
    else if (code !== 'STOPPED') made[handle.acknowledged ? 'notTold' : 'refused'] = code
  })
}
