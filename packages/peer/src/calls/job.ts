import { type Capability, type HermesError, type JsonValue, MAX_LIFE_MS, type Priority } from '@hermes-peer/protocol'
import type { CallContext, NeedConfirmation } from '../api.ts'
import type { Timer } from '../clock.ts'
import type { WorkRecord } from '../delivery/dedup.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Admission } from '../policy/guard.ts'
import type { SessionMark } from '../sessions/table.ts'
import type { JobSink } from './job-sink.ts'
import type { Places } from './places.ts'

/** A capability that this peer provides. */
export interface Provided {
  readonly contract: Capability
  readonly handler: (input: never, context: never) => unknown
  readonly places: Places
}

/** One admitted request, from its place in the queue to its outcome. */
export class Job {
  readonly incoming: Incoming
  readonly record: WorkRecord
  readonly provided: Provided
  /** What policy has let it in by. */
  readonly admission: Admission
  readonly priority: Priority
  readonly since: number
  readonly sender: string
  /** Monotonic ms. */
  readonly deadline: number
  state: 'waiting' | 'running' | 'over' = 'waiting'
  input: unknown
  context: JsonValue | undefined
  timer: Timer | undefined
  /** Runs its handler; set when it enters the line. */
  start = (): void => undefined
  session: SessionMark | undefined
  leaveSession = (): void => undefined
  startedAt = 0
  /** Where its output goes when it is a streaming call. */
  sink: JobSink | undefined
  #controller: AbortController | undefined
  #aborted: HermesError | undefined

  constructor(incoming: Incoming, record: WorkRecord, provided: Provided, admission: Admission) {
    this.incoming = incoming
    this.record = record
    this.provided = provided
    this.admission = admission
    this.priority = incoming.header.priority
    this.since = incoming.receivedAt
    this.sender = incoming.from
    // A header may say any number; no envelope lives longer than a day, and no timer counts much further.
    this.deadline = incoming.receivedAt + Math.min(incoming.budgetMs, MAX_LIFE_MS)
  }

  /** Made on first use: most handlers never look at it. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#aborted) this.#controller.abort(this.#aborted)
    }
    return this.#controller.signal
  }

  get aborted(): HermesError | undefined {
    return this.#aborted
  }

  abort(reason: HermesError): void {
    if (this.#aborted) return
    this.#aborted = reason
    this.#controller?.abort(reason)
  }
}

/** What a handler returns by `ctx.needConfirmation`. */
export class Confirmation {
  readonly partialResult: unknown
  constructor(partialResult: unknown) {
    this.partialResult = partialResult
  }
}

export type AnyContext = CallContext<Capability>
export const asConfirmation = (partialResult: unknown): NeedConfirmation =>
  new Confirmation(partialResult) as unknown as NeedConfirmation

export function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

/** What events tell of a job. */
export function idsOf({ incoming: { header, from }, provided }: Job) {
  return {
    messageId: header.message_id,
    correlationId: header.correlation_id,
    traceId: header.trace_id,
    capability: provided.contract.name,
    from,
  }
}
