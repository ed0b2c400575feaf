import { HermesError } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import { type AnyContext, asConfirmation, type Job } from './job.ts'
import type { ContextRuntime } from './pull.ts'

/** What a handler is told about the call it serves. */
export function handlerContext(job: Job, clock: Clock, pull: ContextRuntime['pull']): AnyContext {
  const { header, from } = job.incoming
  const { contract } = job.provided
  const { session } = job
  return {
    get signal() {
      return job.signal
    },
    caller: from,
    session: session && { id: session.id, caller: from, since: session.since, signal: session.signal },
    messageId: header.message_id,
    correlationId: header.correlation_id ?? '',
    traceId: header.trace_id,
    priority: header.priority,
    attempt: header.attempt,
    remainingMs: () => Math.max(0, job.deadline - clock.monotonic()),
    context: (job.context ?? {}) as Readonly<Record<string, unknown>>,
    fetch: (ref, options) => pull(job, ref, options),
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
  }
}
