import type {
  AnswerOf,
  AnySchema,
  AttemptReport,
  Capability,
  CapabilitySchemas,
  DocumentFile,
  ErrorReturnOf,
  ErrorsOf,
  HandlerAnswerOf,
  HandlerInputOf,
  InputOf,
  Manifest,
  OutputOf,
  PartialOf,
  PartialReturnOf,
  QuestionOf,
  QuestionReturnOf,
  ReturnOf,
  TaskState,
  YieldOf,
  YieldReturnOf,
} from '@hermes-peer/protocol'
import type { StopOptions } from './calls/drain.ts'
import type { PullOptions } from './calls/pull.ts'
import type { Session } from './calls/session.ts'
import type { ContextRef } from './context/store.ts'
import type { EndorseOptions } from './endorsing.ts'
import type { DelegateOptions, Delegation } from './policy/delegations.ts'
import type { Rotated } from './rotation.ts'
import type { Candidate, Query, Sla } from './routing/query.ts'
import type { InstanceFiles } from './seams.ts'
import type { PeerEvents } from './telemetry/events.ts'

/** What a call is addressed to: a contract (typed), for any agent that provides it. */
export interface CallOptions {
  /** Ask this agent only. */
  agent?: string
  /** Only candidates whose labels equal these (or contain one of them, where the label is a list). */
  where?: Readonly<Record<string, string>>
  /** What is wanted in plain words, in any language: only candidates that mean it. */
  intent?: string
  /** Hard conditions: only candidates that keep them. */
  sla?: Sla
  /** The caller's deadline from now, ms. Default 60,000; inside a handler never later than that call's own. */
  timeoutMs?: number
  /** 1..5, 5 is most urgent. Default: the priority of the call being served, else 3. */
  priority?: 1 | 2 | 3 | 4 | 5
  signal?: AbortSignal
  /** Ties several calls into one interaction, `corr_…`. Default: a new one, or that of the call being served. */
  correlationId?: string
  /** False: does not wait behind a gap in the order. Default true. */
  ordered?: boolean
  /** How often the message may be handed on by those who get it, 0..7; 0 forbids it. Default 4. */
  maxHops?: number
  /** What the provider may need to know beside the input; plain JSON data. */
  context?: Readonly<Record<string, unknown>>
  /**
   * What `offerContext` gave: sent as `context.refs`, and from then on whoever the request reaches may pull it. Not for tasks, which
   * may outlive it: `submit` refuses it with `INVALID_OPTION`.
   */
  refs?: readonly ContextRef[]
  /**
   * Authority that was lent. One that was lent to this agent (`ctx.delegation`) is used by the call: it is judged as its root's
   * instead of this agent's own. One that lends to the agent that is called (`delegate`) is handed to it, and the call itself is judged
   * as this agent's own.
   */
  delegation?: Delegation
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
  /** The authenticated sender: who made the call, however it came here. */
  readonly caller: string
  /** The agents that handed it on to this one, in that order; empty when it came directly. */
  readonly via: readonly string[]
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
   * not for this agent, `PEER_UNREACHABLE` when the caller is not there (in a task that may be long), `INVALID_PAYLOAD` for what is
   * no reference of the caller's.
   */
  fetch(ref: unknown, options?: PullOptions): Promise<unknown>
  /** Authority that the caller has lent this agent with the call: for the option `delegation` of calls that are to use it. Verified. */
  readonly delegation: Delegation | undefined
  /**
   * Passes on what the caller has lent with this call, narrower or as it is, for at most five links. Throws `INVALID_OPTION` where nothing
   * was lent, or more would be lent than was.
   */
  delegate(options: DelegateOptions): Delegation
  /** Makes an error that the contract declares; throw it. */
  error<N extends ErrorsOf<C>>(name: N, data: ErrorReturnOf<C, N>): Error
  /** Answers with a plan instead of a result: return it. The caller confirms in a second request of the same correlation. */
  needConfirmation(partialResult: PartialReturnOf<C>): NeedConfirmation
  /** In a task: tells how far the work is, 0..1. Throws `INVALID_OPTION` for another number. In a plain call nobody hears it. */
  progress(fraction: number, note?: string): void
  /**
   * In a task: tells what there is so far; it is checked against the contract's `partial`. Throws `INVALID_RESULT`, and
   * `PAYLOAD_TOO_LARGE` over 256 KiB or 4,900 keys.
   */
  partial(data: PartialReturnOf<C>): void
  /**
   * In a task: asks its owner and waits for the answer, checked against the contract's `asks`. Rejects with the signal's reason
   * when the task ends meanwhile, and with `PAYLOAD_TOO_LARGE` where the open questions together exceed 256 KiB or 4,900 keys.
   */
  ask(question: QuestionReturnOf<C>): Promise<HandlerAnswerOf<C>>
  /**
   * Hands the call on as it came to another agent that provides the same capability, which answers the caller in this one's place:
   * return what it resolves with. An agent id names the agent; the contract that is served leaves the choice to routing.
   * Rejects before anything is sent: `TTL_EXPIRED` when no hop is left, `CALL_CYCLE` with the path when that agent has had the call,
   * `NO_CANDIDATE` when it does not provide the capability, `PEER_UNREACHABLE`, `BUSY`, `PAYLOAD_TOO_LARGE`, `INVALID_OPTION`. Then
   * the handler may choose another, or answer itself; uncaught, the caller is told. Once it has resolved, nothing that this handler
   * returns or throws reaches the caller.
   *
   * A task resolves once the next agent has stored it (one that is named is waited for until it can be reached): from then on it is there, belongs to whoever submitted it, and its owner's
   * questions about it pass through this agent. Until then it is sent again, across lost links and restarts of either side, for
   * as long as this handler's budget or `timeoutMs` lasts; the next agent's refusal rejects it. After `TIMEOUT` that agent may have
   * it all the same: with effects `once` it then goes to no other (`INVALID_OPTION`).
   */
  forward(target: ForwardTarget, options?: ForwardOptions): Promise<HandedOn>
}

/** An agent id, or the contract that is being served. */
export type ForwardTarget = string | { readonly name: string }

export interface ForwardOptions {
  /** With a contract: only agents whose labels equal these. */
  where?: Readonly<Record<string, string>>
  /** The most that the next agent gets, ms. Default: what is left of this handler's budget, which it never passes. */
  timeoutMs?: number
}

declare const handedOnBrand: unique symbol
export interface HandedOn {
  readonly [handedOnBrand]: true
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

/** What serves a capability: a function, or an async generator where its contract has `yields`. */
export type Handler<C extends Capability> = C['schemas']['yields'] extends AnySchema
  ? StreamHandler<C>
  : (
      input: HandlerInputOf<C>,
      context: CallContext<C>,
    ) => ReturnOf<C> | NeedConfirmation | HandedOn | Promise<ReturnOf<C> | NeedConfirmation | HandedOn>

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

/** What is known of a task: where it stands, and what of its news still counts. */
export interface TaskStatus<C extends Capability> {
  /** `submitted` while nobody has acknowledged it, `rejected` when it never will be. */
  readonly state: TaskState | 'submitted' | 'rejected'
  readonly fraction: number | undefined
  readonly note: string | undefined
  readonly partial: PartialOf<C> | undefined
  /** Questions that wait for an answer. */
  readonly questions: readonly TaskQuestionOf<C>[]
}

/** A question of a task, with the way to answer it. */
export interface TaskQuestionOf<C extends Capability> {
  readonly question: QuestionOf<C>
  /** Rejects with `VALIDATION_ERROR`, or `TASK_NOT_WAITING` when it is answered already or the task has gone on. */
  answer(answer: AnswerOf<C>): Promise<void>
}

/** News of a task, in order. `n` grows from one to the next (it leaps where the task is handed on): hand it to `updates` to go on from there. */
export type TaskUpdate<C extends Capability> = { readonly n: number; readonly at: Date } & (
  | { readonly type: 'state'; readonly state: TaskState }
  | { readonly type: 'progress'; readonly fraction: number; readonly note: string | undefined }
  | { readonly type: 'partial'; readonly data: PartialOf<C> }
  | ({ readonly type: 'question' } & TaskQuestionOf<C>)
  /** News that were not fetched in time, folded into what of them still counts. */
  | ({ readonly type: 'snapshot' } & Omit<TaskStatus<C>, 'state'> & { readonly state: TaskState })
  | { readonly type: 'end'; readonly state: TaskState }
)

export interface WaitOptions {
  /** Default: as long as a task may take, one day. */
  timeoutMs?: number
  signal?: AbortSignal
}

/** A piece of work that goes on by itself: it outlives this handle, the link, and with a journal on disk both peers. */
export interface TaskHandle<C extends Capability = Capability> {
  /** `task_…`: what `peer.task` takes after a restart. */
  readonly id: string
  /** The agent that works on it: where it has been handed on, the one that was last heard to. */
  readonly agent: string
  /** False while it is only written down here and sent again and again, until it is acknowledged or expires after a day. */
  readonly acknowledged: boolean
  /** Where it stands now, asked of the agent. Rejects with `PEER_UNREACHABLE` when it cannot be asked in 10 s, unless told otherwise. */
  status(options?: WaitOptions): Promise<TaskStatus<C>>
  /** News as they come, after number `after` (default 0: all), across lost links and restarts; ends after the end. */
  updates(options?: WaitOptions & { after?: number }): AsyncIterable<TaskUpdate<C>>
  /**
   * The output. Rejects with the error it failed with, `CANCELLED`, `TASK_INTERRUPTED`, `TASK_NOT_FOUND` when its result is no
   * longer kept, or `TIMEOUT` of this waiting, which ends nothing.
   */
  result(options?: WaitOptions): Promise<OutputOf<C>>
  /**
   * Ends it. Resolves with the end that counts, which is another one when it had ended before. Rejects when the agent cannot be
   * asked in 10 s, unless told otherwise; what may be on its way there is then still cancelled once it can be.
   */
  cancel(options?: WaitOptions): Promise<TaskState>
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
  /**
   * Hands work over as a task. Resolves once an agent has stored it, or, after `timeoutMs` (default 10,000), with a handle that is
   * not acknowledged yet: it is then sent again for up to a day. With a journal in memory all of this holds for one life.
   */
  submit<C extends Capability>(contract: C, input: InputOf<C>, options?: CallOptions): Promise<TaskHandle<C>>
  /**
   * The handle of a task submitted earlier, also in an earlier life. `agent` is needed only when this peer's journal does not know
   * the task. Throws `INVALID_OPTION`, `TASK_NOT_FOUND`.
   */
  task<C extends Capability>(contract: C, id: string, options?: { agent?: string }): TaskHandle<C>
  /**
   * Calls a capability that yields its output piece by piece; begins at once. Default time 300,000 ms. Another candidate is
   * asked only before the first piece has been read. Ends with the result, or with `STREAM_BROKEN` or another typed error.
   * Throws `INVALID_CONTRACT`, `INVALID_OPTION`, `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE`, `NOT_STARTED`.
   */
  stream<C extends StreamingCapability>(contract: C, input: InputOf<C>, options?: CallOptions): ResultStream<C>
  /**
   * Calls a capability without a contract at hand, by its name or by what it should mean: input is checked against the provider's
   * manifest, output is unknown.
   */
  callDynamic(target: string | { intent: string }, input: unknown, options?: CallOptions): Promise<unknown>
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
  /**
   * Lends this agent's own authority to another: `to` may use the named capabilities, at whoever allows them to this agent, with inputs that
   * keep the constraints, for `ttlMs` (default one hour, at most 24 h). Hand it over in the option `delegation` of a call to it.
   * Throws `INVALID_OPTION`, `INVALID_NAME`.
   */
  delegate(options: DelegateOptions): Delegation
  /** Nobody can pull it any more. */
  withdrawContext(ref: ContextRef): void
  /**
   * Runs `work` so that all calls made inside share one trace: a new one, or that of the call being served. Its id is handed to
   * `work`. Without it every call outside of a handler begins a trace of its own.
   */
  trace<T>(work: (traceId: string) => T): T
  /**
   * Fire and forget, to one agent or to a topic. Resolves with the number of peers it was handed to. With `ack: 'stored'`, to one
   * agent: `stored` says whether that agent has stored it within `timeoutMs` (default 60,000); where it has not, it is sent again
   * for up to a day, and its listeners get it at least once.
   */
  emit(target: EmitTarget, data: unknown, options?: EmitOptions): Promise<{ peers: number; stored?: boolean }>
  /** Receives events sent to this agent under a name; returns the way to stop. */
  onEvent(name: string, receive: (event: ReceivedEvent) => void): () => void
  /** Receives broadcasts of a topic; returns the way to stop. */
  onTopic(topic: string, receive: (event: ReceivedEvent) => void): () => void
  /** Who could serve a query, best first, with the reasons, including who was left out and why. */
  find(query: Query, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<readonly Candidate[]>
  /**
   * Reports agents that match a query as they join, change, are suspected, go offline or leave. `changed` also when the manifest of
   * one says something else; that of an agent which the query names is then asked for at once, so that `manifest` has the new one.
   */
  watch(query: Query, report: (change: WatchChange) => void): () => void
  /** The manifest of an agent, asked over the link when it is not known. */
  manifest(agentId: string, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<Manifest>
  /**
   * Vouches for another agent in one capability: what it gives, signed with the agent key, is for that agent's option `endorsements`, and
   * counts with whoever names this agent as an endorser in `trust`. Throws `NOT_STARTED`, `INVALID_OPTION`.
   */
  endorse(agentId: string, capability: string, options?: EndorseOptions): string
  /** Links to a peer at an address the user gives; with the `local` preset this is what pins an unknown key. Resolves with its agent id. */
  connect(address: string, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<string>
  /** Structured events of every stage. */
  readonly events: PeerEvents
  /** The balance: `calls = succeeded + failed + inFlight`, always. */
  /**
   * Changes the key that this peer runs under, while it runs: a new one is made, signed by the agent key, announced, and linked with
   * everyone; calls move to it, none is lost. What goes on under the old key may go on for five minutes. Without the agent key here, `files` names a key and its certificates
   * that `certifyInstance` made; name the same files in the options of the next start. Resolves once new calls go over the new key. Rejects with `INVALID_OPTION`, `INVALID_CERTIFICATE`,
   * `STORAGE_FAILED`, `BUSY` while another rotation is under way.
   */
  rotate(files?: InstanceFiles): Promise<Rotated>
  /**
   * Tells everyone that a key must not speak for an agent any more; their links with it end at once. Either one of this agent's own
   * keys, by its fingerprint, or a revocation that `makeRevocation` made. Resolves with the number of peers it went to directly;
   * those who are not there hear of it when they come. Rejects with `NOT_ALLOWED` for a signer without the right.
   */
  revoke(what: { key: string; reason: string } | DocumentFile): Promise<{ peers: number }>
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

export interface EmitOptions {
  timeoutMs?: number
  signal?: AbortSignal
  ack?: 'stored'
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
