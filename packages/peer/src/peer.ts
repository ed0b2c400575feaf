import {
  type Capability,
  checkAgainst,
  checkName,
  type DocumentFile,
  HermesError,
  type InputOf,
  isReservedName,
  type Manifest,
  newTraceId,
  type OutputOf,
} from '@hermes-peer/protocol'
import type {
  Answer,
  Balance,
  CallOptions,
  EmitOptions,
  EmitTarget,
  Handler,
  Peer,
  ReceivedEvent,
  ResultStream,
  SessionOptions,
  SessionTarget,
  StreamingCapability,
  TaskHandle,
  WatchChange,
} from './api.ts'
import { callSpec, workOf } from './call-spec.ts'
import { served } from './calls/context.ts'
import type { StopOptions } from './calls/drain.ts'
import { emit } from './calls/emit.ts'
import type { Provided } from './calls/job.ts'
import { outputOf } from './calls/output.ts'
import type { Session } from './calls/session.ts'
import {
  checkContract,
  checkDrain,
  checkHandler,
  checkInstanceFiles,
  checkListener,
  checkOffer,
  checkQuery,
  checkRevoked,
  checkTimes,
} from './checks.ts'
import type { ContextRef } from './context/store.ts'
import { targetOf } from './dynamic-target.ts'
import { checkEndorsements, type EndorseOptions } from './endorsing.ts'
import type { Revoked } from './identity/revocations.ts'
import { delegationsOf } from './lending.ts'
import { createListeners, type Listeners } from './listeners.ts'
import { makeRequest, parseDeclared } from './make-request.ts'
import { openSession } from './open-session.ts'
import { openStream } from './open-stream.ts'
import type { Settings } from './options.ts'
import { createOutside } from './outside.ts'
import type { DelegateOptions, Delegation } from './policy/delegations.ts'
import { openPolicy } from './policy/open.ts'
import type { Rotated } from './rotation.ts'
import type { Candidate, Query } from './routing/query.ts'
import { createRuntime, type Runtime } from './runtime.ts'
import type { InstanceFiles, Seams } from './seams.ts'
import { onAbort, withSignal } from './signals.ts'
import { createLedger } from './telemetry/balance.ts'
import type { PeerEvents } from './telemetry/events.ts'
import { logMessages } from './telemetry/message-log.ts'
import { createTelemetry } from './telemetry/telemetry.ts'

/** Puts a peer together over the given seams; nothing runs before `start`. */
export function assemblePeer(settings: Settings, seams: Seams): Peer {
  return new AgentPeer(settings, seams)
}

class AgentPeer implements Peer {
  readonly agentId: string
  readonly #settings: Settings
  readonly #seams: Seams
  readonly #telemetry
  readonly #outside = createOutside()
  readonly #ledger = createLedger()
  readonly #provided = new Map<string, { contract: Capability; handler: Provided['handler'] }>()
  readonly #listeners: Listeners
  #runtime: Runtime | undefined
  #starting: Promise<this> | undefined
  #stopping: Promise<void> | undefined
  #stopped = false
  readonly #hurry = new AbortController()
  #stopLog = (): void => undefined

  constructor(settings: Settings, seams: Seams) {
    this.agentId = settings.agentId
    this.#settings = settings
    this.#seams = seams
    this.#telemetry = createTelemetry({ clock: seams.clock, outside: this.#outside })
    this.#listeners = createListeners({ telemetry: this.#telemetry, outside: this.#outside })
    if (settings.messageLog) this.#stopLog = logMessages(this.#telemetry, settings.agentId, settings.messageLog)
  }

  get events(): PeerEvents {
    return this.#telemetry.events
  }

  get fingerprint(): string {
    return this.#running().fingerprint
  }

  get addresses(): readonly string[] {
    return this.#runtime?.network.addresses() ?? []
  }

  provide<C extends Capability>(contract: C, handler: Handler<C>): this {
    checkContract(contract, 'provide')
    checkHandler(contract, handler)
    if (isReservedName(contract.name))
      throw new HermesError('CAPABILITY_RESERVED', { details: { field: 'contract.name' } })
    if (this.#provided.has(contract.name)) {
      throw new HermesError('INVALID_CONTRACT', {
        message: `provide: ${contract.name} is provided already by this peer`,
        hint: 'Give each capability one handler.',
        details: { field: 'contract' },
      })
    }
    const entry = { contract: contract as unknown as Capability, handler: handler as unknown as Provided['handler'] }
    this.#runtime?.provide(entry.contract, entry.handler)
    this.#provided.set(contract.name, entry)
    return this
  }

  start(): Promise<this> {
    if (this.#stopping !== undefined) return Promise.reject(new HermesError('STOPPED'))
    this.#starting ??= this.#start()
    return this.#starting
  }

  async #start(): Promise<this> {
    checkEndorsements(this.#settings, this.#seams.clock.now())
    const opened = await this.#seams.open(this.#settings, (text) => this.#telemetry.emit('peer.notice', { text }))
    const telemetry = this.#telemetry
    const { policy: rules, tunables } = this.#settings
    const { clock } = this.#seams
    const { trust } = opened
    const revoked: Revoked = (...whose) => this.#runtime?.identity.revocations.revoked(...whose)
    const delegations = delegationsOf(this.#settings, this.#seams, opened, revoked)
    const policy = await openPolicy({ policy: rules, trust, delegations, clock, telemetry, tunables })
    const runtime = createRuntime({
      settings: this.#settings,
      seams: this.#seams,
      opened,
      policy,
      telemetry,
      ledger: this.#ledger,
      provided: this.#provided,
      deliver: (event) => this.#listeners.deliver(event),
      outside: this.#outside,
    })
    try {
      this.#runtime = runtime
      await runtime.start()
      this.#listeners.start((topic) => runtime.joinTopic(topic))
    } catch (error) {
      this.#runtime = undefined
      this.#stopping = runtime.stop({ drainMs: 0, hurry: this.#hurry.signal }).catch(() => undefined)
      await this.#stopping
      throw HermesError.from(error)
    }
    return this
  }

  stop({ drainMs = this.#settings.tunables.drainMs }: StopOptions = {}): Promise<void> {
    checkDrain(drainMs)
    if (this.#stopping !== undefined) this.#hurry.abort()
    this.#stopping ??= this.#stop(drainMs)
    return this.#stopping
  }

  async #stop(drainMs: number): Promise<void> {
    await this.#starting?.catch(() => undefined)
    await this.#runtime?.stop({ drainMs, hurry: this.#hurry.signal })
    this.#listeners.stop()
    this.#stopped = true
    this.#stopLog()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async call<C extends Capability>(contract: C, input: InputOf<C>, options: CallOptions = {}): Promise<OutputOf<C>> {
    return outputOf(contract, await this.request(contract, input, options))
  }

  session(target: SessionTarget, options: SessionOptions = {}): Promise<Session> {
    const { tunables } = this.#settings
    return openSession(target, options, {
      runtime: () => this.#running(),
      tunables,
      random: this.#seams.random,
      limited: (times, work) => this.#limited(times, work),
      request: (...parts) => this.#request(...parts),
    })
  }

  offerContext(
    data: unknown,
    { agents = [], ttlMs = this.#settings.tunables.contextLifeMs }: { agents?: readonly string[]; ttlMs?: number } = {},
  ): ContextRef {
    checkOffer(agents, ttlMs, this.#settings.tunables.contextLifeMs)
    return this.#running().contexts.store.offer(data, { agents, ttlMs })
  }

  endorse(agentId: string, capability: string, options?: EndorseOptions): string {
    return this.#running().endorsing.endorse(checkName('agent_id', agentId, 'agentId'), capability, options)
  }

  delegate(options: DelegateOptions): Delegation {
    return this.#running().policy.delegations.make(options)
  }

  withdrawContext({ ref }: ContextRef): void {
    this.#running().contexts.store.withdraw(ref)
  }

  request<C extends Capability>(contract: C, input: InputOf<C>, options: CallOptions = {}): Promise<Answer<C>> {
    return this.#request(contract, input, options)
  }

  async #request<C extends Capability>(
    contract: C,
    input: InputOf<C>,
    options: CallOptions,
    sessionId?: string,
  ): Promise<Answer<C>> {
    const runtime = this.#running()
    const { clock, random } = this.#seams
    return makeRequest(contract, input, options, {
      clock,
      random,
      tunables: this.#settings.tunables,
      sessionId,
      grant: runtime.contexts.store.grant,
      served: served.getStore(),
      carryOut: (spec, signal) => this.#carryOut(runtime, spec, signal),
    })
  }

  stream<C extends StreamingCapability>(contract: C, input: InputOf<C>, options: CallOptions = {}): ResultStream<C> {
    const runtime = this.#running()
    checkContract(contract, 'call')
    const { clock, random } = this.#seams
    return openStream(contract, input, options, {
      clock,
      random,
      tunables: this.#settings.tunables,
      grant: runtime.contexts.store.grant,
      served: served.getStore(),
      carryOut: (spec, signal) => this.#carryOut(runtime, spec, signal),
      parseDeclared: (error) => parseDeclared(contract, error),
    })
  }

  async submit<C extends Capability>(
    contract: C,
    input: InputOf<C>,
    options: CallOptions = {},
  ): Promise<TaskHandle<C>> {
    const runtime = this.#running()
    checkContract(contract, 'submit')
    const validated = checkAgainst(contract.schemas.input, input, 'input')
    if (validated instanceof Promise) await validated
    const { clock, random } = this.#seams
    const { tunables } = this.#settings
    const spec = callSpec(
      {
        ...workOf(contract, input),
        options: { timeoutMs: tunables.submitTimeoutMs, ...options },
        grant: runtime.contexts.store.grant,
        served: served.getStore(),
      },
      { clock, random, tunables },
    )
    const handle = await runtime.tasks.submit(contract as unknown as Capability, spec, options.signal)
    return handle as unknown as TaskHandle<C>
  }

  task<C extends Capability>(contract: C, id: string, options: { agent?: string } = {}): TaskHandle<C> {
    const runtime = this.#running()
    checkContract(contract, 'task')
    if (options.agent !== undefined) checkName('agent_id', options.agent, 'agent')
    return runtime.tasks.handle(contract as unknown as Capability, id, options.agent) as unknown as TaskHandle<C>
  }

  async callDynamic(target: string | { intent: string }, input: unknown, given: CallOptions = {}): Promise<unknown> {
    const runtime = this.#running()
    const { clock, random } = this.#seams
    const { tunables } = this.#settings
    const { capability, options } = await targetOf(target, given, {
      runtime,
      clock,
      tunables,
      path: served.getStore()?.path ?? [],
      limited: (times, work) => this.#limited(times, work),
    })
    const spec = callSpec(
      {
        capability,
        effects: undefined,
        input: input ?? null,
        inputSchema: undefined,
        options,
        grant: runtime.contexts.store.grant,
        served: served.getStore(),
      },
      { clock, random, tunables },
    )
    const { response, agentId } = await this.#carryOut(runtime, spec, options.signal)
    if (response.status === 'completed') return response.output
    throw new HermesError('CONFIRMATION_NEEDED', {
      details: { partial_result: response.partial_result, correlation_id: spec.correlationId, agent: agentId },
      messageId: spec.messageId,
      traceId: spec.traceId,
    })
  }

  trace<T>(work: (traceId: string) => T): T {
    const around = served.getStore()
    const traceId = around?.traceId ?? newTraceId((length) => this.#seams.random.bytes(length))
    const inherited = around ?? {
      correlationId: '',
      path: [],
      deadline: Number.POSITIVE_INFINITY,
      priority: undefined,
      signal: undefined,
    }
    return served.run({ ...inherited, traceId }, work, traceId)
  }

  async emit(
    target: EmitTarget,
    data: unknown,
    options: EmitOptions = {},
  ): Promise<{ peers: number; stored?: boolean }> {
    const { outbox, network, directory, tasks, policy } = this.#running()
    const { network: networkName, tunables } = this.#settings
    return emit(
      { ...this.#seams, outbox, network, directory, tasks, policy: policy.call, networkName, tunables },
      target,
      data,
      options,
    )
  }

  onEvent(name: string, receive: (event: ReceivedEvent) => void): () => void {
    return this.#listeners.onEvent(name, receive)
  }

  onTopic(topic: string, receive: (event: ReceivedEvent) => void): () => void {
    return this.#listeners.onTopic(topic, receive)
  }

  async find(query: Query, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<readonly Candidate[]> {
    const runtime = this.#running()
    checkQuery(query)
    return this.#limited(options, async (signal) => {
      const { candidates } = await runtime.router.rank(
        { ...query, path: served.getStore()?.path ?? [] },
        { signal, complete: true },
      )
      return candidates
    })
  }

  watch(query: Query, report: (change: WatchChange) => void): () => void {
    checkQuery(query)
    checkListener(report, 'report')
    return this.#running().directory.watch(query, (change) => this.#outside(() => report(change)))
  }

  async manifest(agentId: string, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<Manifest> {
    checkName('agent_id', agentId, 'agentId')
    const runtime = this.#running()
    return this.#limited(options, (signal) => runtime.directory.manifest(agentId, signal))
  }

  async connect(address: string, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<string> {
    const runtime = this.#running()
    if (typeof address !== 'string' || !address.startsWith('/')) {
      throw new HermesError('INVALID_ADDRESS', {
        message: `address: ${JSON.stringify(address)?.slice(0, 120)} is not a multiaddr`,
        details: { field: 'address' },
      })
    }
    return this.#limited(options, async (signal) => {
      const link = await runtime.links.connect({ addresses: [address], chosen: true }, signal)
      return link.remote.agentId
    })
  }

  rotate(files?: InstanceFiles): Promise<Rotated> {
    try {
      checkInstanceFiles(files)
      return this.#running().rotation.rotate(files)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async revoke(what: { key: string; reason: string } | DocumentFile): Promise<{ peers: number }> {
    const { identity } = this.#running()
    checkRevoked(what)
    return identity.revoke(what)
  }

  balance(): Balance {
    return this.#ledger.read()
  }

  #carryOut(runtime: Runtime, spec: ReturnType<typeof callSpec>, signal: AbortSignal | undefined) {
    const around = served.getStore()?.signal
    if (!around || !signal) return runtime.caller.call(spec, signal ?? around)
    // Both the user's signal and that of the call being served end it; no listener is left on either.
    const both = new AbortController()
    const releases = [around, signal].map((one) => onAbort(one, () => both.abort(one.reason)))
    return runtime.caller.call(spec, both.signal).finally(() => {
      for (const release of releases) release()
    })
  }

  async #limited<T>(
    { timeoutMs = 10_000, signal }: { timeoutMs?: number; signal?: AbortSignal },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    checkTimes({ timeoutMs, ...(signal === undefined ? {} : { signal }) })
    const { clock } = this.#seams
    const stop = new AbortController()
    const timer = clock.after(timeoutMs, () =>
      stop.abort(new HermesError('TIMEOUT', { message: `no result within ${timeoutMs} ms`, source: 'sender' })),
    )
    try {
      return await withSignal(withSignal(work(stop.signal), stop.signal), signal)
    } finally {
      clock.clear(timer)
      stop.abort()
    }
  }

  #running(): Runtime {
    // A handler that is let end needs the calls it makes.
    const draining = !this.#stopped && (served.getStore()?.path.length ?? 0) > 0
    if (this.#stopping !== undefined && !draining) throw new HermesError('STOPPED')
    if (!this.#runtime) throw new HermesError('NOT_STARTED')
    return this.#runtime
  }
}
