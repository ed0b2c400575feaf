import {
  decodePayload,
  deepFreeze,
  HermesError,
  type JsonValue,
  readRequestPayload,
  type TaskState,
} from '@hermes-peer/protocol'
import type { Timer } from '../../clock.ts'
import type { Incoming } from '../../delivery/inbox.ts'
import type { ServeGuard } from '../../policy/guard.ts'
import { askedOf } from '../asked.ts'
import { type Conclusion, concludeError, concludeValue, interrupted } from '../conclude.ts'
import { type Served, served } from '../context.ts'
import { stricter } from '../effects.ts'
import { handlerContext } from '../handler-context.ts'
import { checkNullish } from '../nullish.ts'
import { codeOf, errorOutcome } from '../outcomes.ts'
import type { ContextRuntime } from '../pull.ts'
import type { TaskHandOns } from './hand-on.ts'
import { createTaskIntake, type TaskIntake, type TaskIntakeOptions } from './intake.ts'
import { Run } from './run.ts'
import { idsOf, type Task, type TaskNews } from './task.ts'
import { taskTools } from './task-tools.ts'
import { tellable } from './tellable.ts'

export interface TaskServerOptions extends Omit<TaskIntakeOptions, 'accepted'> {
  readonly handOns: TaskHandOns
  readonly policy: Pick<ServeGuard, 'admit' | 'again' | 'resume'>
  readonly pull: ContextRuntime['pull']
  /** What the owner is told when a handler lets a failed handing-on end its task; undefined for any other throw. */
  told(thrown: unknown): HermesError | undefined
}

/** Takes tasks, runs each, and ends it: by its handler, its owner, its budget, or by the rules of a restart. */
export interface TaskServer {
  /** Takes up what earlier lives have left. */
  start(): Promise<void>
  /** As in `TaskIntake`; nothing is taken while it drains. */
  submitted: TaskIntake['submitted']
  readonly joined: TaskIntake['joined']
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
  /** Another agent has that task now. */
  left(task: Task): void
  /** Ends what may not be started again by another life; leaves the rest to it. */
  stop(reason: HermesError): void
}

export function createTaskServer(options: TaskServerOptions): TaskServer {
  return new JournaledTaskServer(options)
}

class JournaledTaskServer implements TaskServer {
  readonly #options: TaskServerOptions
  readonly #intake: TaskIntake
  readonly joined: TaskIntake['joined']
  readonly #runs = new Map<Task, Run>()
  /** Tasks whose capability is not provided, by its name, until their time is over. */
  readonly #homeless = new Map<string, Set<Task>>()
  readonly #timers = new Set<Timer>()
  /** Ends what goes on of tasks that an earlier life was about to hand on. */
  readonly #resumed = new Map<Task, AbortController>()
  /** Bounded: the one drain of a stop. */
  readonly #drained: (() => void)[] = []
  #draining = false

  constructor(options: TaskServerOptions) {
    this.#options = options
    this.#intake = createTaskIntake({ ...options, accepted: (task) => this.#enqueue(task) })
    this.joined = this.#intake.joined
  }

  async start(): Promise<void> {
    const { book, clock, tunables, agentId } = this.#options
    const left = (await book.load()).filter((task) => !task.ended && !task.elsewhere)
    for (const task of left) {
      const { state, origin } = task
      task.admission = this.#options.policy.resume(askedOf(headerOf(task)))
      if (task.handed) {
        // Whether it has arrived is not known: only the same agent may get it, whatever its effects are.
        void this.#resume(task)
        continue
      }
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
    if (this.#draining) throw new HermesError('DRAINING')
    this.#intake.submitted(incoming)
  }

  capabilityCame(name: string): void {
    const tasks = this.#homeless.get(name)
    this.#homeless.delete(name)
    for (const task of tasks ?? []) if (!task.ended) this.#enqueue(task)
  }

  async cancel(owner: string, taskId: string): Promise<TaskState | undefined> {
    const { book } = this.#options
    await this.#intake.stored(owner, taskId)
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

  left(task: Task): void {
    const { clock, telemetry } = this.#options
    task.admission?.leave()
    clock.clear(this.#runs.get(task)?.budget)
    this.#runs.delete(task)
    this.#lookDrained()
    const { taskId, capability, owner } = task.origin
    telemetry.emit('task.handed', { ...idsOf(task), taskId, capability, from: owner, to: task.handed?.agentId ?? '' })
  }

  drain(): Promise<void> {
    this.#draining = true
    // What has not begun is left to the next life: ended in the middle it would have to be told as interrupted.
    for (const run of this.#runs.values()) if (!run.holds) run.provided.places.remove(run)
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
      // Another life goes on handing it to the same agent.
      if (task.handed) {
        run.abort(reason)
        continue
      }
      const started = task.state !== 'accepted'
      if (started && stricter(provided.contract.effects, origin.effects) === 'once') {
        const error = interrupted(this.#options.agentId, origin.capability)
        this.#end(task, 'interrupted', { outcome: errorOutcome(error, origin.contentType) })
      }
      provided.places.remove(run)
      run.abort(reason)
    }
    this.#runs.clear()
    for (const controller of this.#resumed.values()) controller.abort(reason)
  }

  /** Never rejects. */
  async #resume(task: Task): Promise<void> {
    const { clock, handOns } = this.#options
    const controller = new AbortController()
    this.#resumed.set(task, controller)
    try {
      await handOns.resume(task, clock.monotonic() + this.#leftMs(task), controller.signal)
    } catch (error) {
      // A peer that stops leaves it to the next life.
      if (controller.signal.aborted && this.#draining) return
      this.#end(task, 'failed', { outcome: errorOutcome(HermesError.from(error), task.origin.contentType) })
    } finally {
      this.#resumed.delete(task)
    }
  }

  /** A wall clock that was set back must not give more than the whole budget. */
  #leftMs({ origin }: Task): number {
    const over = origin.acceptedAt + origin.budgetMs
    return Math.max(0, Math.min(origin.budgetMs, over - this.#options.clock.now()))
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
    if (this.#draining) return
    const now = clock.monotonic()
    const leftMs = this.#leftMs(task)
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
    const { book, clock, telemetry, agentId, tunables, handOns, told, pull, policy } = this.#options
    const { contract } = provided
    let conclusion: Conclusion
    try {
      const request = readRequestPayload(decodePayload(origin.contentType, task.payload))
      const input = await checkNullish(contract.schemas.input, request.input, 'input')
      run.context = request.context
      run.input = typeof input === 'object' && input !== null ? deepFreeze(input as never) : input
      // Long after it was let in the policy may be another one.
      const when = { context: run.context, at: origin.acceptedAt }
      const lent = policy.again(askedOf(headerOf(task)), run.input, when)
      if (task.ended || this.#draining) return
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
          forward: (target, how = {}) => handOns.handOn(run, target, how),
          // Its owner may be gone, and what it offered be over: who needs it for long takes it first.
          fetch: (ref, how) => pull({ incoming: headerOf(task), deadline: run.deadline, signal: run.signal }, ref, how),
          session: undefined,
          lent,
          tools: taskTools(run, { book, most: { bytes: tunables.taskNewsBytes, keys: tunables.taskNewsKeys } }),
        },
      )
      try {
        const value = await served.run(inherited, async () => provided.handler(run.input as never, context as never))
        conclusion = await concludeValue(contract, origin.contentType, value)
      } catch (thrown) {
        conclusion = await concludeError(contract, origin.contentType, thrown, run.aborted ?? told(thrown))
      }
      // What it did not wait for counts all the same: a task is never at two agents.
      await handOns.settled(task)
      telemetry.emit('handler.ended', {
        ...idsOf(task),
        capability: origin.capability,
        from: origin.owner,
        code: task.elsewhere
          ? 'FORWARDED'
          : conclusion.outcome.messageType === 'response'
            ? 'OK'
            : codeOf(conclusion.outcome),
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
    if (task.ended || task.elsewhere) return
    task.admission?.leave()
    const { book, clock, responder } = this.#options
    const { origin } = task
    const run = this.#runs.get(task)
    clock.clear(run?.budget)
    this.#runs.delete(task)
    this.#lookDrained()
    this.#homeless.get(origin.capability)?.delete(task)
    const newsOf = ({ messageType, contentType, payload }: Conclusion['outcome']): TaskNews => ({
      type: 'end',
      state: state === 'completed' && messageType === 'error' ? 'failed' : state,
      message_type: messageType as 'response' | 'error',
      payload: decodePayload(contentType, payload),
    })
    const { outcome: told, news } = tellable(outcome, responder.limit(origin.via.at(-1) ?? origin.owner), newsOf)
    book.note(task, news)
    this.#say(task, told.messageType === 'response' ? 'OK' : String(codeOf(told)))
  }

  #say(task: Task, code?: string): void {
    const { telemetry } = this.#options
    const { taskId, capability, owner } = task.origin
    telemetry.emit('task.state', { ...idsOf(task), taskId, capability, from: owner, state: task.state, code })
  }

  #lookDrained(): void {
    if (this.#drained.length > 0 && this.unfinished() === 0) for (const done of this.#drained.splice(0)) done()
  }
}

function headerOf({ origin }: Task) {
  const { owner, via, messageId, correlationId, traceId, priority, capability, delegation } = origin
  return {
    from: owner,
    via,
    header: {
      message_type: 'submit' as const,
      target_capability: capability,
      message_id: messageId,
      correlation_id: correlationId,
      trace_id: traceId,
      priority,
      attempt: 1,
      delegation,
    },
  }
}
