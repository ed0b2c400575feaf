import type {
  AnySchema,
  AttemptReport,
  Capability,
  CapabilitySchemas,
  ErrorReturnOf,
  ErrorsOf,
  HandlerInputOf,
  InputOf,
  Manifest,
  OutputOf,
  PartialOf,
  PartialReturnOf,
  ReturnOf,
  YieldOf,
  YieldReturnOf,
} from '@hermes-peer/protocol'
import type { Candidate, Query } from './routing/query.ts'
import type { PeerEvents } from './telemetry/events.ts'

/** What a call is addressed to: a contract (typed), for any agent that provides it. */
export interface CallOptions {
  /** Ask this agent only. */
  agent?: string
  /** Only candidates whose labels equal these (or contain one of them, where the label is a list). */
  where?: Readonly<Record<string, string>>
  /** The caller's deadline from now, ms. Default 60,000; inside a handler never later than that call's own. */
  timeoutMs?: number
  /** 1..5, 5 is most urgent. Default: the priority of the call being served, else 3. */
  priority?: 1 | 2 | 3 | 4 | 5
  signal?: AbortSignal
  /** Ties several calls into one interaction, `corr_…`. Default: a new one, or that of the call being served. */
  correlationId?: string
  /** False: does not wait behind a gap in the order. Default true. */
  ordered?: boolean
  /** What the provider may need to know beside the input; plain JSON data. */
  context?: Readonly<Record<string, unknown>>
}

/** Everything that is known of an answered call. */
export interface Answer<C extends Capability> {
  readonly status: 'completed' | 'need_confirmation'
  /** Present when the status is `completed`. */
  readonly output: OutputOf<C> | undefined
  /** Present when the status is `need_confirmation`: the plan to confirm in a second request of the same correlation. */
  readonly partialResult: PartialOf<C> | undefined
  /** The agent that answered. */
  readonly agent: string
  readonly messageId: string
  readonly correlationId: string
  readonly traceId: string
  /** Attempts that failed before this answer. */
  readonly attempts: readonly AttemptReport[]
  /** From the call to its answer, ms. */
  readonly tookMs: number
}

/** What a handler is told about the call it serves. */
export interface CallContext<C extends Capability = Capability> {
  /** Aborted when the caller cancels or is gone, at the deadline, and when this peer stops. */
  readonly signal: AbortSignal
  /** The authenticated sender. */
  readonly caller: string
  readonly messageId: string
  readonly correlationId: string
  readonly traceId: string
  readonly priority: number
  /** 1 for a first attempt. */
  readonly attempt: number
  /** Ms left of the handler's budget. */
  remainingMs(): number
  /** What the caller gave as `context`. */
  readonly context: Readonly<Record<string, unknown>>
  /** Makes an error that the contract declares; throw it. */
  error<N extends ErrorsOf<C>>(name: N, data: ErrorReturnOf<C, N>): Error
  /** Answers with a plan instead of a result: return it. The caller confirms in a second request of the same correlation. */
  needConfirmation(partialResult: PartialReturnOf<C>): NeedConfirmation
}

declare const confirmationBrand: unique symbol
export interface NeedConfirmation {
  readonly [confirmationBrand]: true
}

/** What serves a capability: a function, or an async generator where its contract has `yields`. */
export type Handler<C extends Capability> = C['schemas']['yields'] extends AnySchema
  ? StreamHandler<C>
  : (
      input: HandlerInputOf<C>,
      context: CallContext<C>,
    ) => ReturnOf<C> | NeedConfirmation | Promise<ReturnOf<C> | NeedConfirmation>

/**
 * An `async function*`: each `yield` is one piece of the output (up to 64 KiB of JSON), `return` the result. It is not asked for
 * more while its reader is behind. When the reader goes away it gets `return()` at its `yield`, and `context.signal` fires.
 */
export type StreamHandler<C extends Capability> = (
  input: HandlerInputOf<C>,
  context: CallContext<C>,
) => AsyncGenerator<YieldReturnOf<C>, ReturnOf<C>, undefined>

/** A contract that has `yields`. */
export type StreamingCapability = Capability<CapabilitySchemas & { readonly yields: AnySchema }>

/** What `stream` gives: the pieces in their order, then the result. */
export interface ResultStream<C extends Capability> extends AsyncIterable<YieldOf<C>> {
  /**
   * Each iterator takes from the same pieces. Leaving the loop early ends the work at the provider. Throws the typed error when
   * the stream does not come to its signed end: what was read is then incomplete.
   */
  [Symbol.asyncIterator](): AsyncIterator<YieldOf<C>, undefined>
  /** Resolves with the result once the pieces have been read to the end; rejects with the error of the stream. */
  readonly result: Promise<OutputOf<C>>
  readonly messageId: string
  /** Ends it: the provider's generator is returned and its signal fires. */
  cancel(reason?: string): void
}

/** One running agent node. */
export interface Peer extends AsyncDisposable {
  readonly agentId: string
  /** `sha256:…` of this agent's key. */
  readonly fingerprint: string
  /** Multiaddrs that others can dial; empty before `start`. */
  readonly addresses: readonly string[]
  /** Serves a capability, before or after `start`. Throws `CAPABILITY_RESERVED`, `INVALID_CONTRACT`. */
  provide<C extends Capability>(contract: C, handler: Handler<C>): this
  /** Starts listening and announcing; resolves with this peer once it can be called. A failed start leaves nothing running. */
  start(): Promise<this>
  /** Says `leaving`, ends what is in flight with `STOPPED`, closes everything; idempotent. */
  stop(): Promise<void>
  /** Calls a capability; resolves with its output. Ends by its deadline + 250 ms with the output or a `HermesError`. */
  call<C extends Capability>(contract: C, input: InputOf<C>, options?: CallOptions): Promise<OutputOf<C>>
  /** Like `call`, with everything known of the answer, and able to end with `need_confirmation`. */
  request<C extends Capability>(contract: C, input: InputOf<C>, options?: CallOptions): Promise<Answer<C>>
  /**
   * Calls a capability that yields its output piece by piece; begins at once. Default time 300,000 ms. Another candidate is
   * asked only before the first piece has been read. Ends with the result, or with `STREAM_BROKEN` or another typed error.
   * Throws `INVALID_CONTRACT`, `INVALID_OPTION`, `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE`, `NOT_STARTED`.
   */
  stream<C extends StreamingCapability>(contract: C, input: InputOf<C>, options?: CallOptions): ResultStream<C>
  /** Calls a capability without a contract at hand: input is checked against the provider's manifest, output is unknown. */
  callDynamic(capability: string, input: unknown, options?: CallOptions): Promise<unknown>
  /**
   * Runs `work` so that all calls made inside share one trace: a new one, or that of the call being served. Its id is handed to
   * `work`. Without it every call outside of a handler begins a trace of its own.
   */
  trace<T>(work: (traceId: string) => T): T
  /** Fire and forget, to one agent or to a topic. Resolves with the number of peers it was handed to. */
  emit(
    target: EmitTarget,
    data: unknown,
    options?: { timeoutMs?: number; signal?: AbortSignal },
  ): Promise<{ peers: number }>
  /** Receives events sent to this agent under a name; returns the way to stop. */
  onEvent(name: string, receive: (event: ReceivedEvent) => void): () => void
  /** Receives broadcasts of a topic; returns the way to stop. */
  onTopic(topic: string, receive: (event: ReceivedEvent) => void): () => void
  /** Who could serve a query, best first, with the reasons, including who was left out and why. */
  find(query: Query, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<readonly Candidate[]>
  /** Reports agents that match a query as they join, change, are suspected, go offline or leave. */
  watch(query: Query, report: (change: WatchChange) => void): () => void
  /** The manifest of an agent, asked over the link when it is not known. */
  manifest(agentId: string, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<Manifest>
  /** Links to a peer at an address the user gives; with the `local` preset this is what pins an unknown key. Resolves with its agent id. */
  connect(address: string, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<string>
  /** Structured events of every stage. */
  readonly events: PeerEvents
  /** The balance: `calls = succeeded + failed + inFlight`, always. */
  balance(): Balance
}

export interface Balance {
  readonly calls: number
  readonly succeeded: number
  readonly failed: number
  readonly inFlight: number
  readonly failovers: number
}

export type EmitTarget = { agent: string; event: string } | { topic: string }

export interface ReceivedEvent {
  /** Sent to this agent alone, or to a topic. */
  readonly kind: 'event' | 'topic'
  /** Event or topic name. */
  readonly name: string
  readonly sender: string
  readonly data: unknown
  readonly messageId: string
  readonly traceId: string
}

export interface WatchChange {
  readonly type: 'joined' | 'changed' | 'suspect' | 'offline' | 'left'
  readonly agentId: string
}
