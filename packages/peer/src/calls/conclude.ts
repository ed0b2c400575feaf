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

/** What a handler returned, checked against its contract: `INVALID_RESULT` where it is not what the contract says. Never rejects. */
export async function concludeValue(contract: Capability, type: ContentType, value: unknown): Promise<Conclusion> {
  const { output, partial } = contract.schemas
  try {
    if (value instanceof Confirmation) {
      const { partialResult } = value
      await check(partial, partialResult, 'partial')
      const status = 'need_confirmation'
      return { outcome: responseOutcome({ output: null, status, partial_result: partialResult ?? null }, type) }
    }
    await check(output, value, 'output')
    return { outcome: responseOutcome({ output: value ?? null, status: 'completed' }, type) }
  } catch (error) {
    return { outcome: errorOutcome(invalidResult(error), type), cause: error }
  }
}

/** What a handler threw. A handler that was told to stop fails in whatever way its libraries do: the reason it was told counts. */
export async function concludeError(
  contract: Capability,
  type: ContentType,
  thrown: unknown,
  aborted: HermesError | undefined,
): Promise<Conclusion> {
  const error = aborted ?? handlerError(thrown)
  const { declared } = error
  if (!declared) return { outcome: errorOutcome(error, type), cause: thrown }
  try {
    await check(contract.schemas.errors[declared.name], declared.data, `data of ${declared.name}`)
    return { outcome: errorOutcome(error, type), cause: error }
  } catch (invalid) {
    return { outcome: errorOutcome(invalidResult(invalid), type), cause: invalid }
  }
}

async function check(schema: AnySchema | undefined, value: unknown, what: string): Promise<void> {
  if (schema) await checkNullish(schema, value, what, { code: 'INVALID_RESULT' })
}

/** The error that a task ends with which nobody goes on with. */
export const interrupted = (agentId: string, capability: string): HermesError =>
  new HermesError('TASK_INTERRUPTED', {
    message: `${agentId} ended in the middle of ${capability}, and repeating it might do it twice`,
  })
