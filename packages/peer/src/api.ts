import type {
  AttemptReport,
  Capability,
  ErrorReturnOf,
  ErrorsOf,
  HandlerInputOf,
  InputOf,
  Manifest,
  OutputOf,
  PartialOf,
  PartialReturnOf,
  ReturnOf,
} from '@hermes-peer/protocol'
import type { StopOptions } from './calls/drain.ts'
import type { PullOptions } from './calls/pull.ts'
import type { Session } from './calls/session.ts'
import type { ContextRef } from './context/store.ts'
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
  /** What `offerContext` gave: sent as `context.refs`, and from then on whoever the request reaches may pull it. */
  refs?: readonly ContextRef[]
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
  /** Aborted when the caller cancels or is gone, at the deadline, and when this peer stops and its time to drain is over. */
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
  /** The session that the call belongs to, if any. */
  readonly session: HandlerSession | undefined
  /** What the caller gave as `context`. */
  readonly context: Readonly<Record<string, unknown>>
  /**
   * Pulls context that the caller keeps, by a reference that it sent. Rejects with `CONTEXT_GONE` when it has expired or is
   * not for this agent, `INVALID_PAYLOAD` for what is no reference of the caller's.
   */
  fetch(ref: unknown, options?: PullOptions): Promise<unknown>
  /** Makes an error that the contract declares; throw it. */
  error<N extends ErrorsOf<C>>(name: N, data: ErrorReturnOf<C, N>): Error
  /** Answers with a plan instead of a result: return it. The caller confirms in a second request of the same correlation. */
  needConfirmation(partialResult: PartialReturnOf<C>): NeedConfirmation
}

/** A session as a handler sees it. What belongs to it is kept by `caller` and `id`, and dropped when the signal fires. */
export interface HandlerSession {
  readonly id: string
  readonly caller: string
  /** When its first message came, wall clock, ms; later than the caller's own time when this peer has restarted. */
  readonly since: number
  /** Aborted with `SESSION_CLOSED` or `LEASE_EXPIRED` once it is over. */
  readonly signal: AbortSignal
}

declare const confirmationBrand: unique symbol
export interface NeedConfirmation {
  readonly [confirmationBrand]: true
}

export type Handler<C extends Capability> = (
  input: HandlerInputOf<C>,
  context: CallContext<C>,
) => ReturnOf<C> | NeedConfirmation | Promise<ReturnOf<C> | NeedConfirmation>

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
  /**
   * Ends in good order: says `draining`, refuses new work with `DRAINING` (callers go elsewhere), hands back what waits, lets
   * the handlers that run end, with the calls they make, for at most `drainMs`; aborts what still runs then, says `leaving`
   * and closes everything. Own calls outside of handlers end at once with `STOPPED`. Called a second time while it drains, it
   * waits no longer. Throws `INVALID_OPTION`.
   */
  stop(options?: StopOptions): Promise<void>
  /** Calls a capability; resolves with its output. Ends by its deadline + 250 ms with the output or a `HermesError`. */
  call<C extends Capability>(contract: C, input: InputOf<C>, options?: CallOptions): Promise<OutputOf<C>>
  /** Like `call`, with everything known of the answer, and able to end with `need_confirmation`. */
  request<C extends Capability>(contract: C, input: InputOf<C>, options?: CallOptions): Promise<Answer<C>>
  /** Calls a capability without a contract at hand: input is checked against the provider's manifest, output is unknown. */
  callDynamic(capability: string, input: unknown, options?: CallOptions): Promise<unknown>
  /**
   * Begins a session with an agent, or with the best one for a contract. It ends by `close()`, after `idleMs` (default and
   * most: 15 min) without anything in flight, or, with `leaseMs`, when that is over and was not renewed. Rejects with `BUSY`
   * when 1000 sessions with that agent are open, and with what `find` or the first message there ends with.
   */
  session(target: SessionTarget, options?: SessionOptions): Promise<Session>
  /**
   * Keeps plain data here, under 128 random bits, for others to pull with `ctx.fetch`: the `agents` that are named, and those
   * whom a call with it in `refs` reaches. For `ttlMs` (default and most 15 min); at most 16 MiB in all, each under 1 MiB.
   * Throws `INVALID_PAYLOAD`, `INVALID_OPTION`, `PAYLOAD_TOO_LARGE`.
   */
  offerContext(data: unknown, options?: { agents?: readonly string[]; ttlMs?: number }): ContextRef
  /** Nobody can pull it any more. */
  withdrawContext(ref: ContextRef): void
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

/** An agent id, or what the best agent is looked for by. */
export type SessionTarget = string | { contract: Capability; where?: Readonly<Record<string, string>> }

export interface SessionOptions {
  /** Ms without anything in flight until it is closed. Default, and most, 15 min. */
  idleMs?: number
  /** Ms until it is closed unless it is renewed, up to 24 hours; the idle time counts no more. Default: no lease. */
  leaseMs?: number
  /** For finding the agent and agreeing on the lease, ms. Default 10 s. */
  timeoutMs?: number
  signal?: AbortSignal
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
