import { type Header, HermesError, type JsonValue } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Lending } from '../policy/guard.ts'
import type { SessionMark } from '../sessions/table.ts'
import { type AnyContext, asConfirmation, type Provided } from './job.ts'

/** The work that a handler is started for. */
export interface HandledWork {
  readonly incoming: {
    readonly from: string
    readonly via: readonly string[]
    readonly header: Pick<Header, 'message_id' | 'correlation_id' | 'trace_id' | 'priority' | 'attempt'>
  }
  readonly provided: Provided
  readonly context: JsonValue | undefined
  /** Monotonic ms. */
  readonly deadline: number
  readonly signal: AbortSignal
}

/** What only a task can do; in a plain call steps of progress are heard by nobody, and a question is a mistake. */
export type TaskTools = Pick<AnyContext, 'progress' | 'partial' | 'ask'>

const NO_TASK: TaskTools = {
  progress: () => undefined,
  partial: () => undefined,
  ask: () => Promise.reject(new HermesError('TASK_REQUIRED')),
}

export interface ContextOptions {
  readonly clock: Clock
  readonly forward: AnyContext['forward']
  readonly fetch: AnyContext['fetch']
  readonly session: SessionMark | undefined
  readonly lent: Lending | undefined
  readonly tools?: TaskTools
}

/** What a handler is told about the call it serves. */
export function handlerContext(job: HandledWork, options: ContextOptions): AnyContext {
  const { clock, forward, fetch, session, lent, tools = NO_TASK } = options
  const { header, from, via } = job.incoming
  const { contract } = job.provided
  return {
    get signal() {
      return job.signal
    },
    caller: from,
    via,
    session: session && { id: session.id, caller: from, since: session.since, signal: session.signal },
    messageId: header.message_id,
    correlationId: header.correlation_id ?? '',
    traceId: header.trace_id,
    priority: header.priority,
    attempt: header.attempt,
    remainingMs: () => Math.max(0, job.deadline - clock.monotonic()),
    context: (job.context ?? {}) as Readonly<Record<string, unknown>>,
    fetch,
    delegation: lent?.delegation,
    delegate(how) {
      if (lent) return lent.passOn(how)
      throw new HermesError('INVALID_OPTION', {
        message: `delegate: ${from} has lent this agent nothing with this call`,
        hint: "To lend this agent's own authority, use delegate() of the peer.",
        details: { field: 'delegation' },
      })
    },
    error: (name, data) => {
      if (!Object.hasOwn(contract.schemas.errors, name)) {
        return new HermesError('HANDLER_ERROR', {
          message: `${contract.name} does not declare the error ${String(name)}`,
        })
      }
      return new HermesError('HANDLER_ERROR', {
        message: `${contract.name}: ${String(name)}`,
        declared: { name: String(name), data },
      })
    },
    needConfirmation: asConfirmation,
    ...tools,
    forward,
  }
}
