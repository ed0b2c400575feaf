import {
  type Capability,
  decodePayload,
  deepFreeze,
  HermesError,
  type JsonValue,
  readRequestPayload,
  type TaskState,
  taskIdOf,
} from '@hermes-peer/protocol'
import type { Clock, Timer } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Incoming } from '../../delivery/inbox.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import { type Conclusion, concludeError, concludeValue, interrupted } from '../conclude.ts'
import { type Served, served } from '../context.ts'
import { stricter } from '../effects.ts'
import { handlerContext } from '../handler-context.ts'
import type { Provided } from '../job.ts'
import { checkNullish } from '../nullish.ts'
import { bounded, codeOf, errorOutcome } from '../outcomes.ts'
import type { Responder } from '../responder.ts'
import { Run } from './run.ts'
import { Task, type TaskOrigin } from './task.ts'
import type { TaskBook } from './task-book.ts'
import { taskTools } from './task-tools.ts'

export interface TaskServerOptions {
  readonly agentId: string
  readonly book: TaskBook
  readonly responder: Responder
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  provided(name: string): Provided | undefined
}

/** Takes tasks, runs each, and ends it: by its handler, its owner, its budget, or by the rules of a restart. */
export interface TaskServer {
  /** Takes up what earlier lives have left. */
  start(): Promise<void>
  /** A submit that nothing is known of. Throws the refusal. */
  submitted(incoming: Incoming): void
  /** Whether that submit is known; it is answered then. Throws `MESSAGE_CONFLICT`. */
  joined(incoming: Incoming): boolean
  /** A capability is provided from now on. */
  capabilityCame(name: string): void
  /** Cancels a task of that owner; resolves with the end that counts, undefined when it has no such task. */
  cancel(owner: string, taskId: string): Promise<TaskState | undefined>
  /** Takes the answer to a question. Throws `TASK_NOT_WAITING`, `VALIDATION_ERROR`. */
  answer(task: Task, questionId: string, answer: JsonValue): Promise<void>
  /** Takes no new ones. Resolves once nothing runs that another life could not start again: the rest is left to it. */
  drain(): Promise<void>
  /** Tasks that run here and that no other life could start again. */
  unfinished(): number
  /** Ends what may not be started again by another life; leaves the rest to it. */
  stop(reason: HermesError): void
}

/** A submit that is being stored: its attempts wait for the ack. */
interface Accepting {
  readonly incoming: Incoming
  readonly leaves: string[]
  readonly over: Promise<void>
}

export function createTaskServer(options: TaskServerOptions): TaskServer {
  return new JournaledTaskServer(options)
}

class JournaledTaskServer implements TaskServer {
  readonly #options: TaskServerOptions
  /** By owner and task id. What is being stored counts for the same bounds as what is stored. */
  readonly #accepting = new Map<string, Accepting>()
  readonly #runs = new Map<Task, Run>()
  /** Tasks whose capability is not provided, by its name, until their time is over. */
  readonly #homeless = new Map<string, Set<Task>>()
  readonly #timers = new Set<Timer>()
  /** Bounded: the one drain of a stop. */
  readonly #drained: (() => void)[] = []
  #draining = false

  constructor(options: TaskServerOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { book, clock, tunables, agentId } = this.#options
    const left = (await book.load()).filter((task) => !task.ended)
    for (const task of left) {
      const { state, origin } = task
      if (state !== 'accepted') {
        const effects = stricter(this.#options.provided(origin.capability)?.contract.effects, origin.effects)
        if (effects === 'once') {
          this.#end(task, 'interrupted', {
            outcome: errorOutcome(interrupted(agentId, origin.capability), origin.contentType),
          })
          continue
        }
        book.note(task, { type: 'state', state: 'accepted' })
        this.#say(task)
      }
      this.#enqueue(task)
    }
    if (this.#homeless.size === 0) return
    const timer = clock.after(tunables.taskCapabilityGraceMs, () => {
      this.#timers.delete(timer)
      for (const [name, tasks] of this.#homeless) {
        const gone = new HermesError('CAPABILITY_NOT_FOUND', {
          message: `${agentId} does not provide ${name} any more`,
        })
        for (const task of tasks) this.#end(task, 'failed', { outcome: errorOutcome(gone, task.origin.contentType) })
      }
      this.#homeless.clear()
    })
    this.#timers.add(timer)
  }

  submitted(incoming: Incoming): void {
    const { header, from, payload, leaf } = incoming
    const { agentId, book } = this.#options
    const name = header.target_capability as string
    if (this.#draining) throw new HermesError('DRAINING')
    const provided = this.#options.provided(name)
    if (!provided) throw new HermesError('CAPABILITY_NOT_FOUND', { message: `${agentId} does not provide ${name}` })
    const step = `${agentId}#${name}`
    if (header.path.includes(step)) {
      const path = [...header.path, step]
      throw new HermesError('CALL_CYCLE', {
        message: `the task would wait for itself: ${path.join(' → ')}`,
        details: { path },
      })
    }
    const full = book.noRoom(from, payload.length) ?? this.#tooManyAtOnce()
    if (full) throw full
    const { input } = readRequestPayload(decodePayload(header.content_type, payload))
    const taskId = taskIdOf(header.message_id)
    const key = keyOf(from, taskId)
    const leaves = [leaf]
    const checked = checkNullish(provided.contract.schemas.input, input, 'input')
    const over = this.#accept(incoming, provided.contract, taskId, leaves, checked).finally(() =>
      this.#accepting.delete(key),
    )
    this.#accepting.set(key, { incoming, leaves, over })
  }

  joined(incoming: Incoming): boolean {
    const { header, from, leaf } = incoming
    const { telemetry, book } = this.#options
    const taskId = taskIdOf(header.message_id)
    const accepting = this.#accepting.get(keyOf(from, taskId))
    const task = book.find(from, taskId)
    if (!accepting && !task) return false
    const first = accepting ? accepting.incoming.header : undefined
    const same = first
      ? first.payload_sha256 === header.payload_sha256 && first.target_capability === header.target_capability
      : task?.origin.payloadSha256 === header.payload_sha256 && task.origin.capability === header.target_capability
    const ids = { messageId: header.message_id, correlationId: header.correlation_id, traceId: header.trace_id }
    if (!same) {
      telemetry.emit('dedup.conflict', { ...ids, from })
      throw new HermesError('MESSAGE_CONFLICT')
    }
    telemetry.emit('task.joined', { ...ids, from, taskId })
    if (!accepting) this.#acknowledge(incoming, leaf, taskId)
    else if (accepting.leaves.length < MOST_LEAVES) accepting.leaves.push(leaf)
    return true
  }

  capabilityCame(name: string): void {
    const tasks = this.#homeless.get(name)
    this.#homeless.delete(name)
    for (const task of tasks ?? []) if (!task.ended) this.#enqueue(task)
  }

  async cancel(owner: string, taskId: string): Promise<TaskState | undefined> {
    const { book } = this.#options
    await this.#accepting.get(keyOf(owner, taskId))?.over
    const task = book.find(owner, taskId)
    if (!task) return undefined
    const reason = new HermesError('CANCELLED', { message: 'the owner of the task cancelled it' })
    if (!task.ended) this.#give(task, 'cancelled', reason)
    await book.stored(task)
    return task.state
  }

  async answer(task: Task, questionId: string, answer: JsonValue): Promise<void> {
    const run = this.#runs.get(task)
    if (!run || task.ended) {
      throw new HermesError('TASK_NOT_WAITING', {
        message: `the task is ${task.state}`,
        details: { state: task.state },
      })
    }
    if (run.judge(questionId, answer) === 'known') return
    const { answer: schema } = run.provided.contract.schemas
    const parsed = schema ? await checkNullish(schema, answer, 'answer') : answer
    // Another answer may have come while this one was checked.
    if (task.ended || run.judge(questionId, answer) === 'known') return
    const { book } = this.#options
    book.note(task, { type: 'answered', question_id: questionId })
    run.answer(questionId, answer, deepFreeze(parsed as never))
    if (run.openQuestions === 0) book.note(task, { type: 'state', state: 'working' })
    await book.stored(task)
  }

  drain(): Promise<void> {
    this.#draining = true
    if (this.unfinished() === 0) return Promise.resolve()
    return new Promise((resolve) => this.#drained.push(resolve))
  }

  unfinished(): number {
    let count = 0
    for (const { task, provided } of this.#runs.values()) {
      if (task.state !== 'accepted' && stricter(provided.contract.effects, task.origin.effects) === 'once') count++
    }
    return count
  }

  stop(reason: HermesError): void {
    this.#draining = true
    for (const timer of this.#timers) this.#options.clock.clear(timer)
    for (const run of [...this.#runs.values()]) {
      const { task, provided } = run
      const { origin } = task
      this.#options.clock.clear(run.budget)
      const started = task.state !== 'accepted'
      if (started && stricter(provided.contract.effects, origin.effects) === 'once') {
        const error = interrupted(this.#options.agentId, origin.capability)
        this.#end(task, 'interrupted', { outcome: errorOutcome(error, origin.contentType) })
      }
      provided.places.remove(run)
      run.abort(reason)
    }
    this.#runs.clear()
  }

  /** Never rejects: whoever waits is told. */
  async #accept(
    incoming: Incoming,
    contract: Capability,
    taskId: string,
    leaves: readonly string[],
    checked: unknown,
  ): Promise<void> {
    const { header, from } = incoming
    const { book, clock, tunables, telemetry, responder } = this.#options
    try {
      await checked
      const origin: TaskOrigin = {
        taskId,
        owner: from,
        messageId: header.message_id,
        capability: contract.name,
        effects: contract.effects,
        correlationId: header.correlation_id,
        traceId: header.trace_id,
        priority: header.priority,
        path: header.path,
        contentType: header.content_type,
        payloadSha256: header.payload_sha256,
        acceptedAt: clock.now(),
        budgetMs: contract.constraints.budgetMs ?? tunables.taskBudgetMs,
      }
      const task = new Task(origin, incoming.payload, { state: 'accepted', last: 0, folded: undefined, endedAt: 0 })
      try {
        await book.accept(task)
      } catch (cause) {
        telemetry.emit('journal.failed', { what: `storing task ${taskId}`, cause })
        // Said as what it means for the other side: another agent may take it.
        throw new HermesError('BUSY', { message: 'the task cannot be stored here now', retryAfterMs: 1000, cause })
      }
      telemetry.emit('task.accepted', { ...idsOf(task), taskId, capability: contract.name, from })
      for (const leaf of leaves) this.#acknowledge(incoming, leaf, taskId)
      if (!task.ended) this.#enqueue(task)
    } catch (error) {
      const outcome = errorOutcome(HermesError.from(error), header.content_type)
      for (const leaf of leaves) responder.answer(from, leaf, header, outcome)
    }
  }

  #acknowledge({ from, header }: Incoming, leaf: string, taskId: string): void {
    this.#options.responder.acknowledge(from, leaf, header, { status: 'stored', task_id: taskId })
  }

  #enqueue(task: Task): void {
    const { clock } = this.#options
    const { origin } = task
    const provided = this.#options.provided(origin.capability)
    if (!provided) {
      const tasks = this.#homeless.get(origin.capability) ?? new Set()
      tasks.add(task)
      this.#homeless.set(origin.capability, tasks)
      return
    }
    const now = clock.monotonic()
    // A wall clock that was set back must not give more than the whole budget.
    const leftMs = Math.max(0, Math.min(origin.budgetMs, origin.acceptedAt + origin.budgetMs - clock.now()))
    const run = new Run(task, provided, { since: now, deadline: now + leftMs })
    this.#runs.set(task, run)
    run.budget = clock.after(leftMs, () =>
      this.#give(
        task,
        'failed',
        new HermesError('TIMEOUT', { message: `${origin.capability} did not end within ${origin.budgetMs} ms` }),
      ),
    )
    run.start = () => {
      run.holds = true
      void this.#run(run)
    }
    const { telemetry } = this.#options
    if (!provided.places.enter(run) && telemetry.wants('handler.queued')) {
      const { waiting } = provided.places
      telemetry.emit('handler.queued', { ...idsOf(task), capability: origin.capability, from: origin.owner, waiting })
    }
  }

  async #run(run: Run): Promise<void> {
    const { task, provided } = run
    const { origin } = task
    const { book, clock, telemetry, agentId, tunables } = this.#options
    const { contract } = provided
    let conclusion: Conclusion
    try {
      const request = readRequestPayload(decodePayload(origin.contentType, task.payload))
      const input = await checkNullish(contract.schemas.input, request.input, 'input')
      run.input = typeof input === 'object' && input !== null ? deepFreeze(input as never) : input
      run.context = request.context
      if (task.ended) return
      book.note(task, { type: 'state', state: 'working' })
      // Before the handler starts: after a kill nobody may take it for one that was never begun.
      await book.stored(task)
      if (task.ended || run.aborted) return
      this.#say(task)
      const startedAt = clock.monotonic()
      telemetry.emit('handler.started', {
        ...idsOf(task),
        capability: origin.capability,
        from: origin.owner,
        attempt: 1,
        queuedMs: startedAt - run.since,
      })
      const inherited: Served = {
        traceId: origin.traceId,
        correlationId: origin.correlationId ?? '',
        priority: origin.priority,
        path: [...origin.path, `${agentId}#${origin.capability}`],
        deadline: run.deadline,
        signal: run.signal,
      }
      const context = handlerContext(
        { incoming: headerOf(task), provided, context: run.context, deadline: run.deadline, signal: run.signal },
        {
          clock,
          forward: () =>
            Promise.reject(new HermesError('FORWARDING_UNSUPPORTED', { message: 'a task cannot be handed on' })),
          fetch: () =>
            Promise.reject(
              new HermesError('CONTEXT_GONE', { message: 'a task may begin long after its caller is gone' }),
            ),
          session: undefined,
          tools: taskTools(run, { book, newsBytes: tunables.taskNewsBytes }),
        },
      )
      try {
        const value = await served.run(inherited, async () => provided.handler(run.input as never, context as never))
        conclusion = await concludeValue(contract, origin.contentType, value)
      } catch (thrown) {
        conclusion = await concludeError(contract, origin.contentType, thrown, run.aborted)
      }
      telemetry.emit('handler.ended', {
        ...idsOf(task),
        capability: origin.capability,
        from: origin.owner,
        code: conclusion.outcome.messageType === 'response' ? 'OK' : codeOf(conclusion.outcome),
        ms: clock.monotonic() - startedAt,
        ...(conclusion.cause === undefined ? {} : { cause: conclusion.cause }),
      })
    } catch (error) {
      conclusion = { outcome: errorOutcome(HermesError.from(error), origin.contentType) }
    } finally {
      run.holds = false
      provided.places.leave()
    }
    // A peer that stops leaves its tasks to the next life, whatever their handlers make of being stopped.
    if (this.#runs.get(task) !== run) return
    this.#end(task, conclusion.outcome.messageType === 'response' ? 'completed' : 'failed', conclusion)
  }

  /** Ends a task now, whatever its handler still does. */
  #give(task: Task, state: TaskState, reason: HermesError): void {
    const run = this.#runs.get(task)
    this.#end(task, state, { outcome: errorOutcome(reason, task.origin.contentType) })
    if (!run) return
    if (!run.holds) run.provided.places.remove(run)
    run.abort(reason)
  }

  /** The first end counts. */
  #end(task: Task, state: TaskState, { outcome }: Conclusion): void {
    if (task.ended) return
    const { book, clock, responder } = this.#options
    const { origin } = task
    const run = this.#runs.get(task)
    clock.clear(run?.budget)
    this.#runs.delete(task)
    if (this.#drained.length > 0 && this.unfinished() === 0) for (const done of this.#drained.splice(0)) done()
    this.#homeless.get(origin.capability)?.delete(task)
    const told = bounded(outcome, responder.limit(origin.owner) - NEWS_ROOM)
    book.note(task, {
      type: 'end',
      state: state === 'completed' && told.messageType === 'error' ? 'failed' : state,
      message_type: told.messageType as 'response' | 'error',
      payload: decodePayload(told.contentType, told.payload),
    })
    this.#say(task, told.messageType === 'response' ? 'OK' : String(codeOf(told)))
  }

  #say(task: Task, code?: string): void {
    const { telemetry } = this.#options
    const { taskId, capability, owner } = task.origin
    telemetry.emit('task.state', { ...idsOf(task), taskId, capability, from: owner, state: task.state, code })
  }

  #tooManyAtOnce(): HermesError | undefined {
    const most = this.#options.tunables.inFlightPerNode
    if (this.#accepting.size < most) return undefined
    return new HermesError('BUSY', { message: `${most} tasks are being stored`, retryAfterMs: 100 })
  }
}

/** Attempts of one submit that may wait for their ack. */
const MOST_LEAVES = 16
/** What stands around the payload of an end in the answer that tells of it, bytes. */
const NEWS_ROOM = 1024

const keyOf = (owner: string, taskId: string): string => `${owner}#${taskId}`

function idsOf({ origin }: Task) {
  return { messageId: origin.messageId, correlationId: origin.correlationId, traceId: origin.traceId }
}

function headerOf({ origin }: Task) {
  const { owner, messageId, correlationId, traceId, priority } = origin
  return {
    from: owner,
    via: [],
    header: { message_id: messageId, correlation_id: correlationId, trace_id: traceId, priority, attempt: 1 },
  }
}
