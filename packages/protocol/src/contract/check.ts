import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { ErrorCode } from '../errors/codes.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { pointerTo } from '../payload/pointer.ts'
import type { AnySchema } from './types.ts'

export interface CheckOptions {
  /** Default `VALIDATION_ERROR`; `INVALID_RESULT` and `INVALID_OUTPUT` for what a handler returned. */
  code?: ErrorCode
}

/** Longest text of a schema library that is passed on. */
const MAX_ISSUE = 300

/**
 * The value as the schema parses it: at once where the schema can, else as a promise. Throws (or rejects with)
 * `VALIDATION_ERROR` with details `{path, issue}`, path a JSON Pointer into the value; `what` names the value.
 */
export function checkAgainst<S extends AnySchema>(
  schema: S,
  value: unknown,
  what: string,
  options: CheckOptions = {},
): StandardSchemaV1.InferOutput<S> | Promise<StandardSchemaV1.InferOutput<S>> {
  type Result = StandardSchemaV1.Result<StandardSchemaV1.InferOutput<S>>
  const broken = (cause: unknown): never => {
    throw refusal(what, '', 'could not be checked: the schema itself failed', { ...options, cause })
  }
  const settle = (result: Result) => {
    if (result.issues === undefined) return result.value
    throw refusalOf(what, result.issues, options)
  }
  let result: Result | Promise<Result>
  try {
    result = schema['~standard'].validate(value) as Result | Promise<Result>
  } catch (cause) {
    return broken(cause)
  }
  return result instanceof Promise ? result.then(settle, broken) : settle(result)
}

function refusalOf(what: string, issues: readonly StandardSchemaV1.Issue[], options: CheckOptions): HermesError {
  const [first] = issues
  const steps = (first?.path ?? []).map((step) => (typeof step === 'object' ? step.key : step))
  const path = pointerTo(steps.map((step) => (typeof step === 'number' ? step : String(step))))
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  return refusal(what, path, `${(first?.message ?? 'does not fit its schema').slice(0, MAX_ISSUE)}${more}`, options)
}

function refusal(what: string, path: string, issue: string, options: CheckOptions & { cause?: unknown }): HermesError {
  return new HermesError(options.code ?? 'VALIDATION_ERROR', {
    message: `${what}${path}: ${issue}`,
    details: { path, issue },
    ...(options.cause === undefined ? {} : { cause: options.cause }),
  })
}
