import { type AnySchema, type Capability, type ContentType, HermesError } from '@hermes-peer/protocol'
import type { Outcome } from '../delivery/dedup.ts'
import { Confirmation } from './job.ts'
import { checkNullish } from './nullish.ts'
import { errorOutcome, handlerError, invalidResult, responseOutcome } from './outcomes.ts'

/** How a piece of work ended: as it is told, and for the log why, where it ended badly. */
export interface Conclusion {
  readonly outcome: Outcome
  readonly cause?: unknown
}

/**
 * What a handler returned, checked against its contract: `INVALID_RESULT` where it is not what the contract says, or cannot be
 * sent. A promise only where the schema is asynchronous; never throws or rejects.
 */
export function concludeValue(
  contract: Capability,
  type: ContentType,
  value: unknown,
): Conclusion | Promise<Conclusion> {
  const { output, partial } = contract.schemas
  if (value instanceof Confirmation) {
    const { partialResult } = value
    return checked({ schema: partial, value: partialResult, what: 'partial', type }, () => ({
      outcome: responseOutcome(
        { output: null, status: 'need_confirmation', partial_result: partialResult ?? null },
        type,
      ),
    }))
  }
  return checked({ schema: output, value, what: 'output', type }, () => ({
    outcome: responseOutcome({ output: value ?? null, status: 'completed' }, type),
  }))
}

/**
 * What a handler threw. One that was told to stop fails in whatever way its libraries do: `reason`, what it was told, counts.
 * A promise only where the schema of a declared error is asynchronous; never throws or rejects.
 */
export function concludeError(
  contract: Capability,
  type: ContentType,
  thrown: unknown,
  reason: HermesError | undefined,
): Conclusion | Promise<Conclusion> {
  const error = reason ?? handlerError(thrown)
  const { declared } = error
  if (!declared) return { outcome: errorOutcome(error, type), cause: thrown }
  const schema = contract.schemas.errors[declared.name]
  return checked({ schema, value: declared.data, what: `data of ${declared.name}`, type }, () => ({
    outcome: errorOutcome(error, type),
    cause: error,
  }))
}

function checked(
  subject: { schema: AnySchema | undefined; value: unknown; what: string; type: ContentType },
  conclusion: () => Conclusion,
): Conclusion | Promise<Conclusion> {
  const { schema, value, what, type } = subject
  const invalid = (error: unknown): Conclusion => ({ outcome: errorOutcome(invalidResult(error), type), cause: error })
  const end = (): Conclusion => {
    try {
      return conclusion()
    } catch (error) {
      return invalid(error)
    }
  }
  if (!schema) return end()
  try {
    const result = checkNullish(schema, value, what, { code: 'INVALID_RESULT' })
    return result instanceof Promise ? result.then(end, invalid) : end()
  } catch (error) {
    return invalid(error)
  }
}

/** The error that a task ends with which nobody goes on with. */
export const interrupted = (agentId: string, capability: string): HermesError =>
  new HermesError('TASK_INTERRUPTED', {
    message: `${agentId} ended in the middle of ${capability}, and repeating it might do it twice`,
  })
