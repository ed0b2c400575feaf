import {
  decodeFrame,
  decodeHeader,
  encodeProven,
  encodeSingle,
  HermesError,
  type JsonValue,
  leafOf,
  MAX_SINGLE_FRAME,
  Reader,
  readTaskWatchOutput,
} from '@hermes-peer/protocol'
import type { ForwardOptions, ForwardTarget, HandedOn } from '../../api.ts'
import type { Clock } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Incoming } from '../../delivery/inbox.ts'
import type { Forwarding } from '../../forwarding/forwarding.ts'
import type { HandedTasks } from '../../forwarding/pass-on.ts'
import type { TaskPiece } from '../../forwarding/task-hand-on.ts'
import { stricter } from '../effects.ts'
import type { Run } from './run.ts'
import type { Task } from './task.ts'
import type { TaskBook } from './task-book.ts'

/** Tasks on their way to other agents, and where those are that have arrived. */
export interface TaskHandOns extends HandedTasks {
  /** Rejects while it is still this agent's; once it resolves, the task is elsewhere. */
  handOn(run: Run, target: ForwardTarget, how: ForwardOptions): Promise<HandedOn>
  /** Goes on with what an earlier life was about to hand on. `deadline`: monotonic ms. */
  resume(task: Task, deadline: number, signal: AbortSignal): Promise<void>
  /** Resolves once nothing of it is on its way. */
  settled(task: Task): Promise<void>
}

export interface TaskHandOnsOptions {
  readonly book: TaskBook
  readonly forwarding: () => Pick<Forwarding, 'handOnTask' | 'resumeTask'>
  readonly clock: Clock
  readonly tunables: Tunables
  /** It is elsewhere from now on. */
  left(task: Task): void
}

export function createTaskHandOns(options: TaskHandOnsOptions): TaskHandOns {
  const { book, forwarding, clock, tunables, left } = options
  /** Bounded by the tasks that run. Never reject. */
  const going = new Map<Task, Promise<void>>()

  const carry = <T>(
    task: Task,
    limits: Pick<TaskPiece, 'deadline' | 'signal'>,
    run: (piece: TaskPiece) => Promise<T>,
  ): Promise<T> => {
    const piece: TaskPiece = {
      ...limits,
      message: submitted(task),
      note: (agentId) => book.hand(task, agentId === undefined ? undefined : { agentId, stored: false }),
    }
    const carried = run(piece).then(async (given) => {
      const { handed } = task
      // Its end may have been written while the last word was on its way: the first end counts.
      if (task.ended || !handed) throw limits.signal.reason ?? new HermesError('CANCELLED')
      const storing = book.hand(task, { ...handed, stored: true })
      left(task)
      await storing
      return given
    })
    const over = carried.then(
      () => undefined,
      () => undefined,
    )
    going.set(task, over)
    void over.then(() => {
      if (going.get(task) === over) going.delete(task)
    })
    return carried
  }

  /** Whether it is there is not known for as long as a message is on its way; who cancels it waits for that, but not for ever. */
  const whenKnown = async (task: Task): Promise<string | undefined> => {
    let release = (): void => undefined
    const late = new Promise<'late'>((resolve) => {
      const timer = clock.after(tunables.dialTimeoutMs, () => resolve('late'))
      release = () => clock.clear(timer)
    })
    const how = await Promise.race([going.get(task), late])
    release()
    if (how !== 'late') return task.elsewhere ? task.handed?.agentId : undefined
    throw new HermesError('PEER_UNREACHABLE', {
      message: `${task.handed?.agentId}, to whom it is being handed on, does not say whether it has it`,
      details: { agent: task.handed?.agentId },
    })
  }

  return {
    async handOn(run, target, how) {
      const { task } = run
      if (run.aborted) throw run.aborted
      if (task.ended) throw new HermesError('CANCELLED', { message: 'the task has ended' })
      if (going.has(task) || task.elsewhere) {
        throw new HermesError('INVALID_OPTION', {
          message: 'the task has been handed on already',
          details: { field: 'target' },
        })
      }
      const maybeAt = task.handed?.agentId
      if (maybeAt !== undefined && maybeAt !== target && effectsOf(run) === 'once') {
        throw new HermesError('INVALID_OPTION', {
          message: `${maybeAt} may have the task already, which may not be done twice`,
          details: { field: 'target', agent: maybeAt },
        })
      }
      if (task.envelope.length === 0) {
        throw new HermesError('FORWARDING_UNSUPPORTED', { message: 'the task was stored without its envelope' })
      }
      const deadline = Math.min(run.deadline, clock.monotonic() + (how.timeoutMs ?? Number.POSITIVE_INFINITY))
      return carry(task, { deadline, signal: run.signal }, (piece) => forwarding().handOnTask(piece, target, how))
    },
    async resume(task, deadline, signal) {
      const { handed } = task
      if (!handed) return
      await carry(task, { deadline, signal }, (piece) => forwarding().resumeTask(piece, handed.agentId))
    },
    settled: (task) => going.get(task) ?? Promise.resolve(),
    get some() {
      return book.elsewhere > 0 || going.size > 0
    },
    holder(owner, taskId, question) {
      const task = book.find(owner, taskId)
      if (!task) return undefined
      if (task.elsewhere) return task.handed?.agentId
      return question === 'hermes.task.cancel' && going.has(task) && task.handed ? whenKnown(task) : undefined
    },
    passed(owner, taskId, news: JsonValue) {
      if (readTaskWatchOutput(news).events.at(-1)?.type === 'end') book.told(owner, taskId)
    },
  }
}

const effectsOf = ({ provided, task }: Run) => stricter(provided.contract.effects, task.origin.effects)

/** What of a submit is kept beside its payload. */
export function envelopeOf({ frame }: Pick<Incoming, 'frame'>): Uint8Array {
  const bare = { ...frame, payload: new Uint8Array(0) }
  return bare.tag === 0 ? encodeSingle(bare) : encodeProven(bare)
}

/** The submit again, byte for byte as it came. */
function submitted({ origin, envelope, payload }: Task): TaskPiece['message'] {
  const bare = decodeFrame(new Reader(envelope).part(MAX_SINGLE_FRAME, 'the envelope of a task'))
  if (bare.tag === 2) throw new HermesError('STORAGE_FAILED', { message: 'a task is kept as a batch' })
  return {
    header: decodeHeader(bare.header),
    leaf: leafOf(bare.header),
    frame: { ...bare, payload },
    from: origin.owner,
    via: origin.via,
  }
}
