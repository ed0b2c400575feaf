import {
  type AnySchema,
  type Capability,
  decodePayload,
  deepFreeze,
  type Header,
  HermesError,
  isHermesError,
  isReservedName,
  LIMITS,
  readCancelPayload,
  readRequestPayload,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Outcome, WorkRecord } from '../delivery/dedup.ts'
import type { Incoming } from '../delivery/inbox.ts'
import { createSuccessRate } from '../telemetry/success-rate.ts'
import { type Served, served } from './context.ts'
import { handlerContext } from './handler-context.ts'
import { Confirmation, idsOf, isThenable, Job, type Provided } from './job.ts'
import type { JobSink, StreamingJob } from './job-sink.ts'
import { type Load, loadOf } from './load.ts'
import { checkNullish } from './nullish.ts'
import { bounded, codeOf, errorOutcome, handlerError, invalidResult, responseOutcome } from './outcomes.ts'
import { type AgeingQueue, createAgeingQueue } from './queue.ts'
import { createResponder, type Responder, type ResponderOptions } from './responder.ts'
import { checkStart } from './start-check.ts'
import { createUnqueued, type Unqueued, type UnqueuedOptions, workKey } from './unqueued.ts'

export interface ServerOptions extends ResponderOptions, Omit<UnqueuedOptions, 'responder'> {
  readonly agentId: string
  readonly clock: Clock
  readonly tunables: Tunables
}

/** Serves requests: queues, starts each piece of work once, answers, remembers how it ended. */
export interface Server {
  provide(contract: Capability, handler: Provided['handler']): void
  contracts(): readonly Capability[]
  admitted(incoming: Incoming): void
  duplicate(incoming: Incoming, record: WorkRecord): void
  /** Whether such a request may be served at all, before its payload is here. Throws the refusal. */
  mayStart(header: Header, from: string, streams: boolean): unknown
  /** Serves a streaming call. Throws the refusal. */
  stream(incoming: Incoming, sink: JobSink): StreamingJob
  cancel(incoming: Incoming): void
  refused(incoming: Pick<Incoming, 'header' | 'leaf' | 'from'>, error: HermesError): void
  /** The last link of a caller is gone. */
  callerLost(agentId: string): void
  /** A caller has begun a later life than `epoch`: nobody waits for what it asked before. */
  callerRestarted(agentId: string, epoch: number): void
  load(): Load
  /** Share of the work of the last 15 minutes that ended well; declared errors count as well. */
  success(): number
  /** Refuses new work from now on. */
  drain(): void
  stop(reason: HermesError): void
}

/** Attempts of one piece of work that may wait for its answer. */
const MOST_WAITERS = 16

export function createServer(options: ServerOptions): Server {
  return new CallServer(options)
}

class CallServer implements Server {
  readonly #options: ServerOptions
  readonly #provided = new Map<string, Provided>()
  readonly #queues = new Map<Provided, AgeingQueue<Job>>()
  /** Jobs by caller: bounded by what may be in flight. */
  readonly #jobs = new Map<string, Set<Job>>()
  readonly #success
  readonly #responder: Responder
  readonly #unqueued: Unqueued
  #inFlight = 0
  #draining = false

  constructor(options: ServerOptions) {
    this.#options = options
    this.#success = createSuccessRate(options)
    this.#responder = createResponder(options)
    this.#unqueued = createUnqueued({ ...options, responder: this.#responder })
  }

  success(): number {
    return this.#success.read()
  }

  provide(contract: Capability, handler: Provided['handler']): void {
    if (this.#provided.has(contract.name)) {
      throw new HermesError('INVALID_CONTRACT', {
        message: `provide: ${contract.name} is provided already by this peer`,
        hint: 'Give each capability one handler.',
        details: { field: 'contract' },
      })
    }
    const { clock, tunables } = this.#options
    const provided: Provided = { contract, handler, running: 0 }
    this.#provided.set(contract.name, provided)
    this.#queues.set(provided, createAgeingQueue({ clock, ageMs: tunables.priorityAgeMs }))
  }

  contracts(): readonly Capability[] {
    return [...this.#provided.values()].map(({ contract }) => contract)
  }

  admitted(incoming: Incoming): void {
    if (incoming.header.message_type === 'event') {
      this.#unqueued.event(incoming)
      return
    }
    const name = incoming.header.target_capability as string
    if (isReservedName(name)) this.#unqueued.builtIn(incoming, name)
    else this.#accept(incoming)
  }

  mayStart(header: Header, from: string, streams: boolean): Provided {
    const name = header.target_capability as string
    const { agentId, tunables } = this.#options
    const own = this.#jobs.get(from)?.size ?? 0
    const counts = { own, all: this.#inFlight, tunables, draining: this.#draining }
    return checkStart({ agentId, name, header, from, provided: this.#provided.get(name), streams, ...counts })
  }

  stream(incoming: Incoming, sink: JobSink): StreamingJob {
    const job = this.#accept(incoming, sink)
    return {
      abort: (reason) => this.#abort(job, HermesError.from(reason)),
      expire: (message) => this.#expire(job, message),
    }
  }

  duplicate(incoming: Incoming, record: WorkRecord): void {
    const { header, from, leaf } = incoming
    const { telemetry } = this.#options
    if (header.message_type === 'event') return
    const ids = { messageId: header.message_id, correlationId: header.correlation_id, traceId: header.trace_id, from }
    if (record.state === 'refused') {
      throw new HermesError('STALE_SEQUENCE', { message: `${header.message_id} was withdrawn before it came` })
    }
    if (record.stream)
      throw new HermesError('STREAM_BROKEN', { message: 'a stream has this id, and it is not replayed' })
    const same =
      record.messageType === header.message_type &&
      record.capability === header.target_capability &&
      record.payloadSha256 === header.payload_sha256
    if (!same) {
      telemetry.emit('dedup.conflict', ids)
      throw new HermesError('MESSAGE_CONFLICT')
    }
    // A later attempt may live longer: what it names must be remembered as long as it can come.
    record.expiresAt = Math.max(record.expiresAt, incoming.expiresAt + this.#options.tunables.clockToleranceMs)
    if (record.state === 'done') {
      telemetry.emit('dedup.stored', ids)
      this.#responder.send(from, record, [leaf], header)
      return
    }
    telemetry.emit('dedup.joined', ids)
    if (record.waiters.length < MOST_WAITERS && !record.waiters.includes(leaf)) record.waiters.push(leaf)
  }

  cancel(incoming: Incoming): void {
    const { header, from, payload } = incoming
    const { dedup, tunables, clock, telemetry } = this.#options
    const { message_id, expires_at } = readCancelPayload(decodePayload(header.content_type, payload))
    const record = dedup.find(from, message_id)
    if (!record) {
      // It came before its request: that one will be refused.
      const expires = expires_at - incoming.link.offsetMs
      dedup.refuse(
        from,
        message_id,
        Math.min(expires, clock.now() + tunables.callTimeoutMs * 10) + tunables.clockToleranceMs,
      )
      return
    }
    for (const job of this.#jobs.get(from) ?? []) {
      if (job.record !== record) continue
      if (telemetry.wants('handler.cancelled'))
        telemetry.emit('handler.cancelled', { ...idsOf(job), reason: 'the caller cancelled' })
      this.#abort(job, new HermesError('CANCELLED', { message: 'the caller cancelled the work' }))
    }
  }

  refused({ header, leaf, from }: Pick<Incoming, 'header' | 'leaf' | 'from'>, error: HermesError): void {
    this.#responder.answer(from, leaf, header, errorOutcome(error, header.content_type))
  }

  callerLost(agentId: string): void {
    const { clock, tunables, links } = this.#options
    if (!this.#jobs.has(agentId)) return
    clock.after(tunables.callerGraceMs, () => {
      if (links.has(agentId)) return
      for (const job of [...(this.#jobs.get(agentId) ?? [])]) {
        this.#abort(job, new HermesError('CALLER_GONE', { message: `${agentId} was disconnected` }))
      }
    })
  }

  callerRestarted(agentId: string, epoch: number): void {
    for (const job of [...(this.#jobs.get(agentId) ?? [])]) {
      if (job.incoming.header.epoch > epoch) continue
      this.#abort(job, new HermesError('CALLER_GONE', { message: `${agentId} has restarted` }))
    }
  }

  load(): Load {
    const { inFlightPerNode } = this.#options.tunables
    return loadOf(this.#provided.values(), (one) => this.#queues.get(one)?.size ?? 0, inFlightPerNode)
  }

  drain(): void {
    this.#draining = true
  }

  stop(reason: HermesError): void {
    this.#draining = true
    for (const jobs of [...this.#jobs.values()]) for (const job of [...jobs]) this.#abort(job, reason)
  }

  #accept(incoming: Incoming, sink?: JobSink): Job {
    const { header, from, payload, leaf } = incoming
    const { dedup, tunables, clock } = this.#options
    const provided = this.mayStart(header, from, sink !== undefined)
    const request = readRequestPayload(decodePayload(header.content_type, payload))
    const record = dedup.begin(
      from,
      header.message_id,
      workKey(incoming),
      incoming.expiresAt + tunables.clockToleranceMs,
      leaf,
    )
    if (!record)
      throw new HermesError('BUSY', { message: `too many unfetched answers of ${from} are kept`, retryAfterMs: 1000 })
    const job = new Job(incoming, record, provided)
    job.sink = sink
    record.stream = sink !== undefined
    this.#enter(job)
    job.timer = clock.after(Math.max(0, job.deadline - clock.monotonic()), () => this.#expire(job))
    const refuse = (error: unknown): void => {
      if (job.state !== 'waiting') return
      this.#leave(job)
      dedup.withdraw(from, record)
      sink?.end(errorOutcome(HermesError.from(error), header.content_type))
      for (const waiter of record.waiters)
        this.#responder.answer(from, waiter, header, errorOutcome(HermesError.from(error), header.content_type))
    }
    let checked: unknown
    try {
      checked = checkNullish(provided.contract.schemas.input, request.input, 'input')
    } catch (error) {
      refuse(error)
      return job
    }
    const begin = (input: unknown): void => {
      if (job.state !== 'waiting') return
      job.input = typeof input === 'object' && input !== null ? deepFreeze(input as never) : input
      job.context = request.context
      this.#start(job)
    }
    if (checked instanceof Promise) checked.then(begin, refuse)
    else begin(checked)
    return job
  }

  #start(job: Job): void {
    const most = job.provided.contract.constraints.maxConcurrency ?? Number.POSITIVE_INFINITY
    if (job.provided.running < most) {
      this.#run(job)
      return
    }
    const queue = this.#queues.get(job.provided) as AgeingQueue<Job>
    queue.push(job)
    const { telemetry } = this.#options
    if (telemetry.wants('handler.queued')) telemetry.emit('handler.queued', { ...idsOf(job), waiting: queue.size })
  }

  #run(job: Job): void {
    const { clock, telemetry, agentId } = this.#options
    const { header } = job.incoming
    job.state = 'running'
    job.record.state = 'running'
    job.provided.running++
    job.startedAt = clock.monotonic()
    if (telemetry.wants('handler.started')) {
      telemetry.emit('handler.started', {
        ...idsOf(job),
        attempt: header.attempt,
        queuedMs: job.startedAt - job.since,
      })
    }
    const inherited: Served = {
      traceId: header.trace_id,
      correlationId: header.correlation_id ?? '',
      priority: header.priority,
      path: [...header.path, `${agentId}#${job.provided.contract.name}`],
      deadline: job.deadline,
      get signal() {
        return job.signal
      },
    }
    let result: unknown
    try {
      result = served.run(inherited, () => {
        const returned = job.provided.handler(job.input as never, handlerContext(job, clock) as never)
        return job.sink ? job.sink.carry(returned, job) : returned
      })
    } catch (error) {
      this.#failed(job, error)
      return
    }
    if (isThenable(result)) {
      // Whatever a foreign thenable does, a promise ends once, and later.
      Promise.resolve(result).then(
        (value) => this.#returned(job, value),
        (error: unknown) => this.#failed(job, error),
      )
    } else {
      this.#returned(job, result)
    }
  }

  #returned(job: Job, value: unknown): void {
    if (job.record.state === 'done') {
      this.#over(job, undefined)
      return
    }
    try {
      const type = job.incoming.header.content_type
      const { schemas } = job.provided.contract
      if (value instanceof Confirmation) {
        const { partialResult } = value
        this.#checked(job, schemas.partial, partialResult, 'partial', () =>
          responseOutcome({ output: null, status: 'need_confirmation', partial_result: partialResult ?? null }, type),
        )
      } else {
        this.#checked(job, schemas.output, value, 'output', () =>
          responseOutcome({ output: value ?? null, status: 'completed' }, type),
        )
      }
    } catch (error) {
      this.#over(job, errorOutcome(invalidResult(error), job.incoming.header.content_type), error)
    }
  }

  /** Ends a job by what its handler gave, or as `INVALID_RESULT` when that is not what the contract says or cannot be sent. */
  #checked(
    job: Job,
    schema: AnySchema | undefined,
    value: unknown,
    what: string,
    outcome: () => Outcome,
    cause?: unknown,
  ): void {
    const end = (): void => {
      let made: Outcome
      try {
        made = outcome()
      } catch (error) {
        refuse(error)
        return
      }
      this.#over(job, made, cause)
    }
    const refuse = (error: unknown) =>
      this.#over(job, errorOutcome(invalidResult(error), job.incoming.header.content_type), error)
    if (!schema) {
      end()
      return
    }
    const checked = checkNullish(schema, value, what, { code: 'INVALID_RESULT' })
    if (checked instanceof Promise) checked.then(end, refuse)
    else end()
  }

  #failed(job: Job, thrown: unknown): void {
    if (job.record.state === 'done') {
      this.#over(job, undefined)
      return
    }
    const reason = job.aborted
    // A handler that was told to stop fails in whatever way its libraries do: the reason it was told is what counts.
    const error = reason ?? handlerError(thrown)
    const type = job.incoming.header.content_type
    const { declared } = error
    if (!declared) {
      this.#over(job, errorOutcome(error, type), thrown)
      return
    }
    const schema = job.provided.contract.schemas.errors[declared.name]
    try {
      this.#checked(job, schema, declared.data, `data of ${declared.name}`, () => errorOutcome(error, type), error)
    } catch (invalid) {
      this.#over(job, errorOutcome(invalidResult(invalid), type), invalid)
    }
  }

  /** The handler has ended (or was never started): its place is free, and its outcome, if it is the first, is told. */
  #over(job: Job, outcome: Outcome | undefined, cause?: unknown): void {
    if (job.state === 'over') return
    if (job.state === 'running') job.provided.running--
    const { telemetry, clock } = this.#options
    this.#leave(job)
    // What the caller ended says nothing of this agent.
    if (outcome && job.startedAt > 0 && (!job.aborted || job.aborted.code === 'TIMEOUT')) {
      this.#success.count(outcome.messageType === 'response' || (isHermesError(cause) && cause.declared !== undefined))
    }
    const apart = job.sink ? 0 : LIMITS.payload
    const checked = outcome && bounded(outcome, this.#responder.limit(job.incoming.from), apart)
    if (job.startedAt > 0 && telemetry.wants('handler.ended')) {
      telemetry.emit('handler.ended', {
        ...idsOf(job),
        // Without an outcome of its own it had been ended by its deadline, and was answered then.
        code: checked ? (checked.messageType === 'response' ? 'OK' : codeOf(checked)) : 'TIMEOUT',
        ms: clock.monotonic() - job.startedAt,
        ...(cause === undefined ? {} : { cause }),
      })
    }
    if (checked) this.#conclude(job, checked)
    this.#next(job.provided)
  }

  #conclude(job: Job, outcome: Outcome): void {
    const { from } = job.incoming
    const { record } = job
    if (job.sink) {
      // Neither joined nor replayed: that it was done is all that is remembered.
      record.state = 'done'
      this.#options.dedup.settle(from, record)
      job.sink.end(outcome)
      return
    }
    this.#options.dedup.finish(from, record, outcome)
    const waiters = record.waiters
    record.waiters = []
    this.#responder.send(from, record, waiters, job.incoming.header, outcome)
  }

  #expire(job: Job, why = `it did not end within ${job.incoming.header.timeout_ms} ms`): void {
    if (job.state === 'over') return
    const error = new HermesError('TIMEOUT', {
      message: `${job.provided.contract.name}: ${why}`,
    })
    const waiting = job.state === 'waiting'
    job.abort(error)
    if (waiting) {
      this.#queues.get(job.provided)?.remove(job)
      this.#over(job, errorOutcome(error, job.incoming.header.content_type))
    } else {
      // Answered now; its place stays taken until the handler has really ended.
      this.#conclude(job, errorOutcome(error, job.incoming.header.content_type))
    }
  }

  #abort(job: Job, reason: HermesError): void {
    job.abort(reason)
    if (job.state !== 'waiting') return
    this.#queues.get(job.provided)?.remove(job)
    // Never started: whoever still waits for it is told, and the id stays refused.
    this.#over(job, errorOutcome(reason, job.incoming.header.content_type))
  }

  #next(provided: Provided): void {
    const most = provided.contract.constraints.maxConcurrency ?? Number.POSITIVE_INFINITY
    const queue = this.#queues.get(provided) as AgeingQueue<Job>
    while (provided.running < most) {
      const job = queue.shift()
      if (!job) return
      this.#run(job)
    }
  }

  #enter(job: Job): void {
    const { from } = job.incoming
    let jobs = this.#jobs.get(from)
    if (!jobs) {
      jobs = new Set()
      this.#jobs.set(from, jobs)
    }
    jobs.add(job)
    this.#inFlight++
  }

  #leave(job: Job): void {
    job.state = 'over'
    this.#options.clock.clear(job.timer)
    const { from } = job.incoming
    const jobs = this.#jobs.get(from)
    if (!jobs?.delete(job)) return
    this.#inFlight--
    if (jobs.size === 0) this.#jobs.delete(from)
  }
}
