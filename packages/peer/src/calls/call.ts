import {
  type AttemptReport,
  ERROR_TABLE,
  type ErrorRow,
  type HermesError,
  type Priority,
  type ResponsePayload,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Sla } from '../routing/query.ts'
import type { GivenInput } from '../routing/schema-filter.ts'
import { type Reply, replyOf } from './answer.ts'
import type { PendingAttempt } from './pending.ts'
import type { PieceReader } from './stream-caller.ts'

/** What a call is, once its options have been read. */
export interface CallSpec {
  readonly capability: string
  readonly agent: string | undefined
  readonly where: Readonly<Record<string, string>> | undefined
  readonly intent: string | undefined
  readonly sla: Sla | undefined
  readonly input: GivenInput
  /** The payload of every attempt: JSON. */
  readonly payload: Uint8Array
  readonly effects: 'none' | 'idempotent' | 'once' | undefined
  readonly messageId: string
  readonly correlationId: string
  readonly traceId: string
  readonly priority: Priority
  readonly path: readonly string[]
  readonly ordered: boolean
  readonly maxHops: number | undefined
  readonly sessionId?: string | undefined
  /** Names the delegation in the payload's context. */
  readonly delegation?: string | undefined
  /** An attempt is on its way to that agent. */
  readonly reached?: ((agentId: string) => void) | undefined
  /** Monotonic ms. */
  readonly deadline: number
  readonly timeoutMs: number
  /** Takes the pieces of a streaming call; absent for a plain one. */
  readonly reader?: PieceReader
}

/** How one attempt ended. */
export type Ending =
  | { readonly kind: 'answer'; readonly response: ResponsePayload; readonly by?: string }
  | { readonly kind: 'refused'; readonly error: HermesError; readonly neverStarts?: true; readonly by?: string }
  /** Whether the work was started is not known. */
  | { readonly kind: 'lost'; readonly error: HermesError; readonly by?: string }

/** One attempt on the wire. It stays answerable until the call ends: a late answer of an earlier attempt is an answer. */
export interface Attempt {
  readonly agentId: string
  readonly recipientEpoch: number
  readonly number: number
  readonly startedAt: number
  readonly pending: PendingAttempt
}

/** State of one call between its first candidate and its end. */
export class CallState {
  readonly spec: CallSpec
  readonly startedAt: number
  readonly reports: AttemptReport[] = []
  readonly attempts: Attempt[] = []
  /** Agents that were asked, with what each said last. */
  readonly asked = new Map<string, HermesError>()
  /** Agents that could not be dialled. */
  readonly unreachable = new Map<string, HermesError>()
  /** How the last attempt or dial ended, whoever it was. */
  lastFailure: HermesError | undefined
  /** Agents that have promised never to start this piece of work: they are not asked again. */
  readonly withdrawn = new Set<string>()
  /** Ends the call with an answer to an attempt that had been given up. */
  late: (response: ResponsePayload, agentId: string) => void = () => undefined
  /** The caller has seen a piece of the output: it can be made nowhere else any more. */
  committed = false
  /** The agent in charge has said, or not denied, that its effects are `once`. */
  unsafeToRepeat = false
  readonly #clock: Clock
  readonly #settled = new Set<Attempt>()
  #stop: AbortController | undefined
  /** Ends the attempt in flight, so that its place is given back. */
  abandon: ((reason: HermesError) => void) | undefined
  #endedBy: HermesError | undefined

  constructor(spec: CallSpec, clock: Clock) {
    this.spec = spec
    this.#clock = clock
    this.startedAt = clock.monotonic()
  }

  /** Aborted at the end of the call, whatever it is: dials and waits of it stop then. Made on first use: most calls wait for nothing but their answer. */
  get signal(): AbortSignal {
    if (!this.#stop) {
      this.#stop = new AbortController()
      if (this.#endedBy) this.#stop.abort(this.#endedBy)
    }
    return this.#stop.signal
  }

  /** Why it has ended, once it has. */
  get endedBy(): HermesError | undefined {
    return this.#endedBy
  }

  end(reason: HermesError): void {
    this.#endedBy = reason
    this.#stop?.abort(reason)
    this.abandon?.(reason)
  }

  get leftMs(): number {
    return this.spec.deadline - this.#clock.monotonic()
  }

  get ids() {
    const { messageId, correlationId, traceId, capability } = this.spec
    return { messageId, correlationId, traceId, capability }
  }

  /** An attempt has been answered: nothing is left to cancel there. */
  settle(attempt: Attempt): void {
    this.#settled.add(attempt)
  }

  isSettled(attempt: Attempt): boolean {
    return this.#settled.has(attempt)
  }

  report(agentId: string, error: HermesError): void {
    this.lastFailure = error
    this.reports.push({
      agentId,
      code: error.declared?.name ?? error.code,
      message: error.message,
      afterMs: Math.round(this.#clock.monotonic() - this.startedAt),
    })
  }

  /** The error a user gets: with the ids to reconcile by, and what was tried. */
  failure(error: HermesError): HermesError {
    const { messageId, traceId } = this.spec
    return error.with({ messageId, traceId, attempts: this.reports })
  }
}

/** The promise that no handler was started for that attempt. */
export function notStarted(error: HermesError): boolean {
  return !error.declared && (ERROR_TABLE[error.code] as ErrorRow).notStarted === true
}

/** Reads what `hermes.outcome` tells of a finished run. */
export function replyOfOutcome(outcome: unknown): Reply {
  const { message_type, payload } = (outcome ?? {}) as { message_type?: unknown; payload?: unknown }
  return replyOf(message_type === 'response' ? 'response' : 'error', payload as never)
}
