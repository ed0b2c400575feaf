import {
  HermesError,
  isTaskEnd,
  type JsonValue,
  MAX_LIFE_MS,
  messageIdOf,
  readTaskAnswerInput,
  readTaskCancelInput,
  readTaskWatchInput,
  type TaskWatchOutput,
} from '@hermes-peer/protocol'
import type { Clock, Timer } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Dedup } from '../../delivery/dedup.ts'
import type { BuiltIn } from '../unqueued.ts'
import type { Task } from './task.ts'
import type { TaskBook } from './task-book.ts'
import type { TaskServer } from './task-server.ts'

export interface TaskBuiltInsOptions {
  readonly book: TaskBook
  readonly server: TaskServer
  readonly dedup: Dedup
  readonly clock: Clock
  readonly tunables: Tunables
}

/** `hermes.task.watch`, `hermes.task.input` and `hermes.task.cancel`: for the owner of a task, and nobody else. */
export function taskBuiltIns({ book, server, dedup, clock, tunables }: TaskBuiltInsOptions): [string, BuiltIn][] {
  /** Watches that wait, by their attempt: a copy of one, which a forwarder may send, takes no place of another. */
  const watchers = new Map<Task, Map<string, Promise<TaskWatchOutput>>>()

  /** The one place where it is judged whose task it is. A task of somebody else is none: its id tells nothing. */
  const owned = (agentId: string, taskId: string): Task => {
    const task = book.find(agentId, taskId)
    if (task) return task
    throw new HermesError('TASK_NOT_FOUND', { message: `there is no task ${taskId} of ${agentId} here` })
  }

  const watch: BuiltIn = (input, { agentId, leaf, direct, whenArrived }) => {
    const { task_id, after } = readTaskWatchInput(input as JsonValue)
    const task = owned(agentId, task_id)
    const page = (): TaskWatchOutput => {
      const news = { task_id, ...book.page(task, after) }
      // That it reached a forwarder does not say that it reached the owner.
      if (direct && news.events.at(-1)?.type === 'end')
        whenArrived(() => book.told(agentId, task_id), { soon: book.crowded(agentId) })
      return news
    }
    const now = page()
    if (now.events.length > 0 || isTaskEnd(now.state)) return now
    const waiting = watchers.get(task) ?? new Map<string, Promise<TaskWatchOutput>>()
    const known = waiting.get(leaf)
    if (known) return known
    if (waiting.size >= tunables.taskWatchers) {
      throw new HermesError('BUSY', {
        message: `${waiting.size} watchers wait for news of ${task_id}`,
        retryAfterMs: 1000,
      })
    }
    watchers.set(task, waiting)
    const news = new Promise<TaskWatchOutput>((resolve) => {
      let timer: Timer | undefined
      const end = (): void => {
        clock.clear(timer)
        stop()
        waiting.delete(leaf)
        if (waiting.size === 0) watchers.delete(task)
        resolve(page())
      }
      const stop = book.watch(task, () => {
        // Asked again, the question goes to the agent that has it now.
        if (task.elsewhere || page().events.length > 0) end()
      })
      timer = clock.after(tunables.taskWatchMs, end)
    })
    waiting.set(leaf, news)
    return news
  }

  const answer: BuiltIn = async (input, { agentId }) => {
    const { task_id, question_id, answer } = readTaskAnswerInput(input as JsonValue)
    await server.answer(owned(agentId, task_id), question_id, answer)
    return { accepted: true }
  }

  const cancel: BuiltIn = async (input, { agentId }) => {
    const { task_id } = readTaskCancelInput(input as JsonValue)
    const state = await server.cancel(agentId, task_id)
    if (state) return { state }
    // It may still be on its way: from now on it is refused, for as long as a submit may live.
    const messageId = messageIdOf(task_id)
    const until = clock.now() + MAX_LIFE_MS + tunables.clockToleranceMs
    if (dedup.refuse(agentId, messageId, until)) return { state: 'cancelled' }
    throw new HermesError('BUSY', { message: 'there is no room to remember that it is cancelled', retryAfterMs: 1000 })
  }

  return [
    ['hermes.task.watch', watch],
    ['hermes.task.input', answer],
    ['hermes.task.cancel', cancel],
  ]
}
