import {
  type Capability,
  decodePayload,
  deepFreeze,
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
import type { Forwarding } from '../forwarding/forwarding.ts'
import type { Admission } from '../policy/guard.ts'
import type { Sessions } from '../sessions/table.ts'
import { createSuccessRate } from '../telemetry/success-rate.ts'
import { askedOf } from './asked.ts'
import { type Conclusion, concludeError, concludeValue } from './conclude.ts'
import { type Served, served } from './context.ts'
import { handlerContext } from './handler-context.ts'
import { idsOf, isThenable, Job, type Provided } from './job.ts'
import type { JobSink, StreamingJob } from './job-sink.ts'
import { createJobs, type Jobs } from './jobs.ts'
import { createLoadMeter, type Load } from './load.ts'
import { checkNullish } from './nullish.ts'
import { bounded, codeOf, errorOutcome } from './outcomes.ts'
import { createPlaces } from './places.ts'
import type { ContextRuntime } from './pull.ts'
import { createResponder, type Responder, type ResponderOptions } from './responder.ts'
import { checkStart } from './start-check.ts'
import { createUnqueued, type Unqueued, type UnqueuedOptions, workKey } from './unqueued.ts'
import { endedAs, noteBack, wayBack } from './ways-back.ts'

export interface ServerOptions extends ResponderOptions, Omit<UnqueuedOptions, 'responder'> {
  readonly agentId: string
  readonly sessions: Sessions
  readonly pull: ContextRuntime['pull']
  readonly clock: Clock
  readonly tunables: Tunables
  /** A submit that nothing is known of. Throws the refusal. */
  submitted(incoming: Incoming): void
  readonly forwarding: Forwarding
}

/** Serves requests: queues, starts each piece of work once, answers, remembers how it ended. */
export interface Server {
  provide(contract: Capability, handler: Provided['handler']): void
  contracts(): readonly Capability[]
  provided(name: string): Provided | undefined
  admitted(incoming: Incoming): void
  duplicate(incoming: Incoming, record: WorkRecord): void
  /** Whether such a request may be served at all, before its payload is here. Throws the refusal. */
  mayStart(incoming: Incoming, streams: boolean): unknown
  /** Serves a streaming call. Throws the refusal. */
  stream(incoming: Incoming, sink: JobSink): StreamingJob
  cancel(incoming: Incoming): void
  refused(incoming: Pick<Incoming, 'header' | 'leaf' | 'link'>, error: HermesError): void
  /** The last link of a caller is gone. */
  callerLost(agentId: string): void
  /** A caller has begun a later life than `epoch`: nobody waits for what it asked before. */
  callerRestarted(agentId: string, epoch: number): void
  load(): Load
  /** Share of the work of the last 15 minutes that ended well; declared errors count as well. */
  success(): number
  /** Refuses new work from now on and hands back what waits; `ended` resolves once nothing is unfinished. */
  drain(): { ended: Promise<void>; handedBack: number }
  readonly jobs: Pick<Jobs, 'unfinished' | 'when' | 'size'>
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
  readonly jobs = createJobs()
  readonly #success
  readonly #responder: Responder
  readonly #unqueued: Unqueued
  readonly #readLoad
  #draining = false

  constructor(options: ServerOptions) {
    this.#options = options
    this.#success = createSuccessRate(options)
    const { clock, tunables } = options
    this.#readLoad = createLoadMeter({
      clock,
      mostOfAll: tunables.inFlightPerNode,
      spanMs: tunables.presenceMs * (1 - tunables.presenceJitter),
    })
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
    const places = createPlaces({
      most: contract.constraints.maxConcurrency ?? Number.POSITIVE_INFINITY,
      queue: { clock, ageMs: tunables.priorityAgeMs },
    })
    this.#provided.set(contract.name, { contract, handler, places })
  }

  provided(name: string): Provided | undefined {
    return this.#provided.get(name)
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
    if (incoming.header.message_type === 'submit') {
      this.#options.submitted(incoming)
      return
    }
    if (isReservedName(name)) this.#unqueued.builtIn(incoming, name)
    else this.#accept(incoming)
  }

  mayStart(incoming: Incoming, streams: boolean): void {
    this.#checkStart(incoming, streams)
    this.#options.policy.shape(askedOf(incoming))
  }

  #checkStart({ header, from }: Incoming, streams: boolean): Provided {
    const name = header.target_capability as string
    const { agentId, tunables } = this.#options
    const counts = { own: this.jobs.count(from), all: this.jobs.size, tunables, draining: this.#draining }
    return checkStart({ agentId, name, header, from, provided: this.#provided.get(name), streams, ...counts })
  }

  stream(incoming: Incoming, sink: JobSink): StreamingJob {
    const job = this.#accept(incoming, sink)
    return {
      abort: (reason) => this.#abort(job, HermesError.from(reason)),
      expire: (message) => this.#expire(job, message),
      deadline: job.deadline,
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
      const neighbour = incoming.via.length > 0 ? incoming.link.remote.agentId : undefined
      this.#responder.send(from, record, [{ leaf, neighbour }], header)
      return
    }
    if (record.state === 'forwarded') {
      this.#options.forwarding.again(incoming, record)
      return
    }
    telemetry.emit('dedup.joined', ids)
    if (record.waiters.includes(leaf)) noteBack(record, incoming)
    else if (record.waiters.length < MOST_WAITERS) {
      noteBack(record, incoming)
      record.waiters.push(leaf)
      record.latest = incoming
    }
  }

  cancel(incoming: Incoming): void {
    const { header, from, payload } = incoming
    const { dedup, tunables, clock, telemetry } = this.#options
    const { message_id, expires_at } = readCancelPayload(decodePayload(header.content_type, payload))
    const record = dedup.find(from, message_id)
    if (record?.state === 'forwarded') this.#options.forwarding.cancel(incoming, record)
    if (!record) {
      // A forwarder may end, in its own name, what came through it.
      const ended = this.jobs.withdrawn(from, message_id)
      for (const [job, reason] of ended ?? []) this.#abort(job, reason)
      if (this.#options.forwarding.withdrawn(from, message_id) || ended) return
      // It came before its request: that one will be refused.
      const expires = expires_at - incoming.link.offsetMs
      dedup.refuse(
        from,
        message_id,
        Math.min(expires, clock.now() + tunables.callTimeoutMs * 10) + tunables.clockToleranceMs,
      )
      return
    }
    for (const job of this.jobs.of(from)) {
      if (job.record !== record) continue
      if (telemetry.wants('handler.cancelled'))
        telemetry.emit('handler.cancelled', { ...idsOf(job), reason: 'the caller cancelled' })
      this.#abort(job, new HermesError('CANCELLED', { message: 'the caller cancelled the work' }))
    }
  }

  refused({ header, leaf, link }: Pick<Incoming, 'header' | 'leaf' | 'link'>, error: HermesError): void {
    this.#responder.answer(link.remote.agentId, leaf, header, errorOutcome(error, header.content_type))
  }

  callerLost(agentId: string): void {
    const { clock, tunables, links } = this.#options
    if (!this.jobs.awaitedBy(agentId)) return
    clock.after(tunables.callerGraceMs, () => {
      if (links.has(agentId)) return
      for (const [job, reason] of this.jobs.lost(agentId)) this.#abort(job, reason)
    })
  }

  callerRestarted(agentId: string, epoch: number): void {
    for (const [job, reason] of this.jobs.restarted(agentId, epoch)) this.#abort(job, reason)
  }

  load(): Load {
    return this.#readLoad(this.#provided.values())
  }

  drain(): { ended: Promise<void>; handedBack: number } {
    this.#draining = true
    const waiting = [...this.jobs.all()].filter(({ state }) => state === 'waiting')
    for (const job of waiting) this.#handBack(job, new HermesError('DRAINING'))
    return { ended: this.jobs.when(() => this.jobs.unfinished() === 0), handedBack: waiting.length }
  }

  stop(reason: HermesError): void {
    this.#draining = true
    for (const job of this.jobs.all()) this.#abort(job, reason)
  }

  #accept(incoming: Incoming, sink?: JobSink): Job {
    const provided = this.#checkStart(incoming, sink !== undefined)
    const admission = this.#options.policy.admit(askedOf(incoming))
    try {
      return this.#take(incoming, provided, admission, sink)
    } catch (error) {
      admission.leave()
      throw error
    }
  }

  #take(incoming: Incoming, provided: Provided, admission: Admission, sink: JobSink | undefined): Job {
    const { header, from, payload, leaf } = incoming
    const { dedup, tunables, clock, sessions } = this.#options
    const session = header.session_id === undefined ? undefined : sessions.admit(from, header.session_id, header.epoch)
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
    noteBack(record, incoming)
    const job = new Job(incoming, record, provided, admission)
    job.sink = sink
    record.stream = sink !== undefined
    this.jobs.enter(job)
    job.session = session
    if (session) job.leaveSession = sessions.begin(session, (reason) => this.#abort(job, reason))
    job.timer = clock.after(Math.max(0, job.deadline - clock.monotonic()), () => this.#expire(job))
    const refuse = (error: unknown): void => this.#handBack(job, error)
    let checked: unknown
    try {
      checked = checkNullish(provided.contract.schemas.input, request.input, 'input')
    } catch (error) {
      refuse(error)
      return job
    }
    const begin = (input: unknown): void => {
      if (job.state !== 'waiting') return
      try {
        job.input = deepFreeze(input)
        admission.judge(job.input, request.context)
        job.context = request.context
        this.#start(job)
      } catch (error) {
        // What a schema has made may be anything, and look at with anything but care throws.
        if (job.startedAt > 0) this.#failed(job, error)
        else refuse(error)
      }
    }
    if (checked instanceof Promise) checked.then(begin, refuse)
    else begin(checked)
    return job
  }

  /** Not started, and forgotten: it may be asked for again, here or elsewhere. */
  #handBack(job: Job, error: unknown): void {
    if (job.state !== 'waiting') return
    const { record, incoming } = job
    job.provided.places.remove(job)
    this.#leave(job)
    this.#options.dedup.withdraw(incoming.from, record)
    const outcome = errorOutcome(HermesError.from(error), incoming.header.content_type)
    job.sink?.end(outcome)
    for (const waiter of record.waiters)
      this.#responder.answer(wayBack(record, waiter, incoming.from), waiter, incoming.header, outcome)
  }

  #start(job: Job): void {
    const { places } = job.provided
    job.start = () => this.#run(job)
    if (places.enter(job)) return
    const { telemetry } = this.#options
    if (telemetry.wants('handler.queued')) telemetry.emit('handler.queued', { ...idsOf(job), waiting: places.waiting })
  }

  #run(job: Job): void {
    const { clock, telemetry, agentId } = this.#options
    const { header } = job.incoming
    job.state = 'running'
    job.record.state = 'running'
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
      const context = handlerContext(job, {
        clock,
        forward: (target, how = {}) =>
          job.sink
            ? Promise.reject(new HermesError('FORWARDING_UNSUPPORTED'))
            : this.#options.forwarding.handOn(job, target, how),
        fetch: (ref, how) => this.#options.pull(job, ref, how),
        session: job.session,
        lent: job.admission.lent,
      })
      result = served.run(inherited, () => {
        const returned = job.provided.handler(job.input as never, context as never)
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
    this.#settle(job, () => concludeValue(job.provided.contract, job.incoming.header.content_type, value))
  }

  #failed(job: Job, thrown: unknown): void {
    this.#settle(job, () => {
      const reason = job.aborted ?? this.#options.forwarding.told(thrown)
      return concludeError(job.provided.contract, job.incoming.header.content_type, thrown, reason)
    })
  }

  #settle(job: Job, conclude: () => Conclusion | Promise<Conclusion>): void {
    if (job.record.state === 'done' || job.record.state === 'forwarded') {
      this.#over(job, undefined)
      return
    }
    const concluded = conclude()
    if (concluded instanceof Promise) void concluded.then(({ outcome, cause }) => this.#over(job, outcome, cause))
    else this.#over(job, concluded.outcome, concluded.cause)
  }

  /** The handler has ended (or was never started): its place is free, and its outcome, if it is the first, is told. */
  #over(job: Job, outcome: Outcome | undefined, cause?: unknown): void {
    if (job.state === 'over') return
    const held = job.state === 'running'
    const { telemetry, clock } = this.#options
    this.#leave(job)
    // What the caller ended says nothing of this agent; what ran out of time has been counted then.
    if (outcome && job.startedAt > 0 && !job.aborted) {
      this.#success.count(outcome.messageType === 'response' || (isHermesError(cause) && cause.declared !== undefined))
    }
    // A large answer travels on a stream of its own, which goes to a neighbour only.
    const apart = job.sink || job.incoming.via.length > 0 ? 0 : LIMITS.payload
    const checked = outcome && bounded(outcome, this.#responder.limit(job.incoming.link.remote.agentId), apart)
    if (job.startedAt > 0 && telemetry.wants('handler.ended')) {
      telemetry.emit('handler.ended', {
        ...idsOf(job),
        code: checked ? (checked.messageType === 'response' ? 'OK' : codeOf(checked)) : endedAs(job),
        ms: clock.monotonic() - job.startedAt,
        ...(cause === undefined ? {} : { cause }),
      })
    }
    if (checked) this.#conclude(job, checked)
    if (held) job.provided.places.leave()
  }

  #conclude(job: Job, outcome: Outcome): void {
    const { record, sender: from } = job
    // Another agent answers for it.
    if (record.state === 'forwarded') return
    record.latest = undefined
    if (job.sink) {
      // Neither joined nor replayed: that it was done is all that is remembered.
      record.state = 'done'
      this.#options.dedup.settle(from, record)
      job.sink.end(outcome)
      return
    }
    this.#options.dedup.finish(from, record, outcome)
    const waiters = record.waiters.map((leaf) => ({ leaf, neighbour: record.back?.get(leaf) }))
    record.waiters = []
    delete record.back
    this.#responder.send(from, record, waiters, job.incoming.header, outcome)
  }

  #expire(job: Job, why = `it did not end within ${job.incoming.header.timeout_ms} ms`): void {
    if (job.state === 'over') return
    const error = new HermesError('TIMEOUT', {
      message: `${job.provided.contract.name}: ${why}`,
    })
    const waiting = job.state === 'waiting'
    job.abort(error)
    this.jobs.changed()
    if (waiting) {
      job.provided.places.remove(job)
      this.#over(job, errorOutcome(error, job.incoming.header.content_type))
    } else {
      if (job.record.state === 'running') this.#success.count(false)
      // Answered now; its place stays taken until the handler has really ended.
      this.#conclude(job, errorOutcome(error, job.incoming.header.content_type))
    }
  }

  #abort(job: Job, reason: HermesError): void {
    job.abort(reason)
    this.jobs.changed()
    if (job.state !== 'waiting') return
    job.provided.places.remove(job)
    // Never started: whoever still waits for it is told, and the id stays refused.
    this.#over(job, errorOutcome(reason, job.incoming.header.content_type))
  }

  #leave(job: Job): void {
    job.state = 'over'
    this.#options.clock.clear(job.timer)
    this.jobs.leave(job)
    job.leaveSession()
    job.admission.leave()
  }
}
