import {
  type AnySchema,
  type Capability,
  fromWireError,
  HermesError,
  isTaskEnd,
  type JsonValue,
  MAX_HOPS,
  MAX_LIFE_MS,
  messageIdOf,
  readResponsePayload,
  readTaskCancelOutput,
  readTaskWatchOutput,
  type TaskEvent,
  type TaskQuestion,
  type TaskState,
  type TaskWatchOutput,
} from '@hermes-peer/protocol'
import type { TaskHandle, TaskQuestionOf, TaskStatus, TaskUpdate, WaitOptions } from '../../api.ts'
import { checkTimes } from '../../checks.ts'
import type { Clock } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Link } from '../../link/link.ts'
import type { Random } from '../../random.ts'
import { onAbort } from '../../signals.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import { checkNullish } from '../nullish.ts'
import type { AskRuntime } from '../system.ts'
import type { OwnTask, OwnTasks } from './own-tasks.ts'
import type { Submitter } from './submitter.ts'
import { createStatusFold, type NewsReader, withoutNews } from './task-status.ts'

export interface TaskHandleOptions {
  readonly contract: Capability
  readonly task: OwnTask
  readonly own: OwnTasks
  readonly submitter: Submitter
  readonly ask: AskRuntime
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  /** Ends when the peer stops. */
  readonly life: AbortSignal
  reach(agentId: string, signal: AbortSignal): Promise<Link>
}

/** How long `status`, `cancel` and answers try to reach the agent unless told otherwise, ms. */
const ASK_MS = 10_000
/** Room for the way there and back beside what a watch waits at the other end, ms. */
const WATCH_GRACE_MS = 2_000
/** How long one try of what is answered at once is waited for before the next, ms. */
const TRY_MS = 3_000

export function createTaskHandle(options: TaskHandleOptions): TaskHandle {
  return new RemoteTask(options)
}

class RemoteTask implements TaskHandle {
  readonly id: string
  readonly #options: TaskHandleOptions
  readonly #news: NewsReader = {
    partial: (data) => this.#partial(data),
    question: (question) => this.#question(question),
  }
  #end: Extract<TaskEvent, { type: 'end' }> | undefined

  constructor(options: TaskHandleOptions) {
    this.#options = options
    this.id = options.task.taskId
  }

  get agent(): string {
    const { agentId, holder } = this.#options.task
    return holder ?? agentId
  }

  get acknowledged(): boolean {
    return this.#options.task.acknowledged
  }

  async status(options: WaitOptions = {}): Promise<TaskStatus<Capability>> {
    const { task } = this.#options
    if (task.rejected) return withoutNews('rejected')
    return this.#within({ timeoutMs: ASK_MS, ...options }, async (signal) => {
      const fold = createStatusFold(this.#news)
      let newest: number | undefined
      // Several answers where there is much news: each goes on where the last one ended, and none waits at the other end.
      for (let after = 0; ; ) {
        let page: TaskWatchOutput
        const { acknowledged } = task
        try {
          page = await this.#ask('hermes.task.watch', { task_id: this.id, after }, signal, readTaskWatchOutput)
        } catch (error) {
          if (!acknowledged && HermesError.from(error).code === 'TASK_NOT_FOUND') return fold.status
          throw error
        }
        for (const event of page.events) {
          after = event.n
          if (event.type === 'end') this.#end = event
          await fold.add(event)
        }
        // As far as there was news when this was asked: a task that tells much would never be read to its end.
        newest ??= page.last
        const read = newest === undefined ? fold.status.state === page.state : after >= newest
        if (read || page.events.length === 0) return fold.status
      }
    })
  }

  async *updates(options: WaitOptions & { after?: number } = {}): AsyncGenerator<TaskUpdate<Capability>> {
    const { after: from = 0, ...wait } = options
    if (!Number.isSafeInteger(from) || from < 0) {
      throw new HermesError('INVALID_OPTION', {
        message: `after: ${String(from)} is not the number of an update`,
        details: { field: 'after' },
      })
    }
    let after = from
    const limit = this.#limit({ timeoutMs: MAX_LIFE_MS, ...wait })
    try {
      for (;;) {
        const page = await this.#watch(after, limit.signal)
        for (const event of page.events) {
          after = event.n
          const update = await this.#update(event)
          if (update) yield update
          if (event.type === 'end') return
        }
        if (page.events.length === 0 && isTaskEnd(page.state)) return
      }
    } finally {
      limit.release()
    }
  }

  async result(options: WaitOptions = {}): Promise<unknown> {
    const end =
      this.#end ?? (await this.#within({ timeoutMs: MAX_LIFE_MS, ...options }, (signal) => this.#awaitEnd(signal)))
    const { contract, task } = this.#options
    const ids = { messageId: messageIdOf(this.id), traceId: task.traceId }
    if (end.message_type === 'error') {
      const error = fromWireError(end.payload).with(ids)
      const schema = error.declared && contract.schemas.errors[error.declared.name]
      if (!error.declared || !schema) throw error
      const data = await this.#parse(schema, error.declared.data, `data of ${error.declared.name}`)
      throw error.with({ declared: { name: error.declared.name, data } })
    }
    const response = readResponsePayload(end.payload)
    if (response.status === 'need_confirmation') {
      throw new HermesError('CONFIRMATION_NEEDED', {
        message: `${this.agent} ended ${contract.name} with a plan that waits for confirmation`,
        details: { partial_result: response.partial_result, agent: this.agent },
        ...ids,
      })
    }
    return this.#parse(contract.schemas.output, response.output, 'output')
  }

  async cancel(options: WaitOptions = {}): Promise<TaskState> {
    const { task, submitter } = this.#options
    const withdrawn = await submitter.withdraw(task)
    if (withdrawn) return withdrawn
    const state = await this.#within({ timeoutMs: ASK_MS, ...options }, (signal) =>
      this.#ask('hermes.task.cancel', { task_id: this.id }, signal, (output) => readTaskCancelOutput(output).state),
    )
    if (!task.acknowledged) submitter.settle(task, state)
    return state
  }

  async #awaitEnd(signal: AbortSignal): Promise<Extract<TaskEvent, { type: 'end' }>> {
    for (let after = 0; ; ) {
      const page = await this.#watch(after, signal)
      for (const event of page.events) {
        after = event.n
        if (event.type !== 'end') continue
        this.#end = event
        return event
      }
      if (page.events.length === 0 && isTaskEnd(page.state)) {
        throw new HermesError('TASK_NOT_FOUND', { message: `${this.agent} no longer keeps how ${this.id} ended` })
      }
    }
  }

  /** One long poll, repeated until it is answered: across lost links, restarts, and while the submit is still on its way. */
  async #watch(after: number, signal: AbortSignal): Promise<TaskWatchOutput> {
    const { task, own, tunables, telemetry } = this.#options
    const patience = this.#patience(tunables.taskUnprovenMs)
    let last: HermesError | undefined
    for (let failures = 0; ; failures++) {
      if (signal.aborted) throw endedBy(signal, last)
      if (task.rejected) throw task.rejected
      // As it was when this was asked: its ack may overtake the answer that there was no such task yet.
      const { acknowledged } = task
      try {
        const timeoutMs = tunables.taskWatchMs + WATCH_GRACE_MS
        const input = { task_id: this.id, after }
        const page = await this.#once('hermes.task.watch', input, signal, readTaskWatchOutput, timeoutMs)
        if (failures > 0 && after > 0) telemetry.emit('task.resumed', { taskId: this.id, agentId: this.agent, after })
        return page
      } catch (thrown) {
        if (signal.aborted) throw endedBy(signal, last)
        const error = HermesError.from(thrown)
        const onItsWay = error.code === 'TASK_NOT_FOUND' && !acknowledged
        if (!onItsWay && !patience(error)) throw error
        last = error
        await this.#pause(failures, Math.max(error.retryAfterMs ?? 0, 0), signal, (wake) =>
          onItsWay ? own.watch(this.id, wake) : () => undefined,
        )
      }
    }
  }

  /** Asks until there is an answer or the signal ends it; what the agent refuses is final unless it may be asked again. */
  async #ask<T>(capability: string, input: unknown, signal: AbortSignal, read: (output: JsonValue) => T): Promise<T> {
    const patience = this.#patience(TRY_MS)
    let last: HermesError | undefined
    for (let failures = 0; ; failures++) {
      if (signal.aborted) throw endedBy(signal, last)
      try {
        return await this.#once(capability, input, signal, read, TRY_MS)
      } catch (thrown) {
        if (signal.aborted) throw endedBy(signal, last)
        const error = HermesError.from(thrown)
        if (!patience(error)) throw error
        last = error
        await this.#pause(failures, error.retryAfterMs ?? 0, signal, () => () => undefined)
      }
    }
  }

  /**
   * Whether it may be asked again after an error. For so long that includes an answer whose maker cannot be known yet: whoever can
   * prove it may just have come back itself.
   */
  #patience(untrustedMs: number): (error: HermesError) => boolean {
    const { clock } = this.#options
    let since: number | undefined
    return (error) => {
      if (error.code !== 'UNTRUSTED_ANSWER' || error.details.known !== false) {
        since = undefined
        return error.retryable || error.code === 'TIMEOUT'
      }
      since ??= clock.monotonic()
      return clock.monotonic() - since < untrustedMs
    }
  }

  async #once<T>(
    capability: string,
    input: unknown,
    signal: AbortSignal,
    read: (output: JsonValue) => T,
    timeoutMs: number,
  ): Promise<T> {
    const { ask, task } = this.#options
    const link = await this.#reach(signal)
    let by = this.agent
    const output = await ask(link, capability, input, {
      timeoutMs,
      signal,
      traceId: task.traceId,
      // However far it was handed on, the question follows.
      maxHops: MAX_HOPS,
      answeredBy: (agentId) => {
        by = agentId
      },
    })
    const news = read(output as JsonValue)
    this.#heldBy(by)
    return news
  }

  /** By the way that the task went; where that is broken, straight to who was heard to work on it. */
  async #reach(signal: AbortSignal): Promise<Link> {
    const { reach, task } = this.#options
    const { agentId, holder } = task
    try {
      return await reach(agentId, signal)
    } catch (cause) {
      if (signal.aborted) throw cause
      // Whatever is wrong with the way there says nothing of the task: it may be right the next time.
      const error = new HermesError('PEER_UNREACHABLE', {
        message: `${agentId}: ${HermesError.from(cause).message}`,
        cause,
      })
      if (holder === undefined) throw error
      return reach(holder, signal).catch(() => Promise.reject(error))
    }
  }

  #heldBy(agentId: string): void {
    const { task, own } = this.#options
    if (agentId === this.agent) return
    task.holder = agentId
    if (own.get(this.id) === task) void own.save(task)
  }

  /** Full jitter from the first wait, doubling up to the cap; at least `leastMs`. */
  #pause(
    failures: number,
    leastMs: number,
    signal: AbortSignal,
    early: (wake: () => void) => () => void,
  ): Promise<void> {
    const { clock, random, tunables } = this.#options
    const most = Math.min(tunables.reconnectCapMs, tunables.reconnectMs * 2 ** Math.min(failures, 16))
    return new Promise((resolve) => {
      const end = (): void => {
        clock.clear(timer)
        release()
        stop()
        resolve()
      }
      const timer = clock.after(Math.max(leastMs, random.next() * most), end)
      let stop = (): void => undefined
      let release = (): void => undefined
      stop = early(end)
      release = onAbort(signal, end)
    })
  }

  async #update(event: TaskEvent): Promise<TaskUpdate<Capability> | undefined> {
    const base = { n: event.n, at: new Date(event.at) }
    switch (event.type) {
      case 'state':
        return { ...base, type: 'state', state: event.state }
      case 'progress':
        return { ...base, type: 'progress', fraction: event.fraction, note: event.note }
      case 'partial':
        return { ...base, type: 'partial', data: await this.#partial(event.data) }
      case 'question':
        return { ...base, type: 'question', ...(await this.#question(event)) }
      case 'snapshot': {
        const fold = createStatusFold(this.#news)
        await fold.add(event)
        return { ...base, type: 'snapshot', ...fold.status, state: event.state }
      }
      case 'end':
        this.#end = event
        return { ...base, type: 'end', state: event.state }
      default:
        return undefined
    }
  }

  #partial(data: JsonValue): Promise<unknown> {
    return this.#parse(this.#options.contract.schemas.partial, data, 'partial')
  }

  async #question({ question_id, data }: TaskQuestion): Promise<TaskQuestionOf<Capability>> {
    const { question: schema, answer: answers } = this.#options.contract.schemas
    return {
      question: await this.#parse(schema, data, 'question'),
      answer: async (answer) => {
        // The original value is sent; the other side parses it.
        if (answers) await checkNullish(answers, answer, 'answer')
        const input = { task_id: this.id, question_id, answer: answer ?? null }
        await this.#within({ timeoutMs: ASK_MS }, (signal) =>
          this.#ask('hermes.task.input', input, signal, () => undefined),
        )
      },
    }
  }

  async #parse(schema: AnySchema | undefined, value: unknown, what: string): Promise<unknown> {
    if (!schema) return value
    try {
      return await checkNullish(schema, value, what, { code: 'INVALID_OUTPUT' })
    } catch (error) {
      throw HermesError.from(error).with({
        message: `${this.agent} told of ${this.#options.contract.name} what its contract does not allow: ${(error as Error).message}`,
      })
    }
  }

  async #within<T>(
    options: WaitOptions & { timeoutMs: number },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const limit = this.#limit(options)
    try {
      return await work(limit.signal)
    } finally {
      limit.release()
    }
  }

  /** A signal for the caller's time, the caller's signal and the life of the peer together; leaves no listener behind. */
  #limit(options: WaitOptions & { timeoutMs: number }): { signal: AbortSignal; release(): void } {
    checkTimes(options)
    const { clock, life } = this.#options
    const { timeoutMs, signal } = options
    const both = new AbortController()
    const timer = clock.after(timeoutMs, () =>
      both.abort(
        new HermesError('TIMEOUT', {
          message: `${this.id}: no answer of ${this.agent} within ${timeoutMs} ms`,
          source: 'sender',
        }),
      ),
    )
    const releases = [life, ...(signal ? [signal] : [])].map((one) => onAbort(one, () => both.abort(one.reason)))
    return {
      signal: both.signal,
      release() {
        clock.clear(timer)
        for (const release of releases) release()
        both.abort(new HermesError('CANCELLED', { message: 'it is over' }))
      },
    }
  }
}

/** Why the waiting ended, and, where time ran out, what kept going wrong meanwhile. */
function endedBy(signal: AbortSignal, last: HermesError | undefined): HermesError {
  const reason = HermesError.from(signal.reason, 'CANCELLED')
  if (reason.code !== 'TIMEOUT' || !last) return reason
  return reason.with({
    message: `${reason.message}; the last try ended with ${last.code}: ${last.message}`,
    cause: last,
  })
}
