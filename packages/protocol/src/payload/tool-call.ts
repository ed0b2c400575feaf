import { checkInteger, checkPattern, objectOf, refuse } from './fields.ts'
import { isJsonObject, type JsonValue } from './value.ts'

/** How often a tool may be tried, and how long to wait between. */
export interface RetryPolicy {
  /** All attempts, the first included: 1 to 10. */
  readonly max_attempts: number
  /** Wait before the second attempt, ms; doubled for each further one. Default 0. */
  readonly backoff_ms?: number
}

/** One call of a tool, as a model asks for it. */
export interface ToolCall {
  /** Given by the model; 1 to 128 letters, digits, `_` and `-`. */
  readonly tool_call_id: string
  readonly name: string
  readonly input: JsonValue
  /** 1 ms to one day. */
  readonly timeout_ms: number
  /** Default: one attempt. */
  readonly retry_policy?: RetryPolicy
}

export const TOOL_CALL_ID = /^[A-Za-z0-9_-]{1,128}$/
export const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/
export const MAX_TOOL_TIMEOUT_MS = 24 * 60 * 60 * 1000
export const MAX_TOOL_ATTEMPTS = 10
export const MAX_TOOL_BACKOFF_MS = 60 * 60 * 1000

const FIELDS: ReadonlySet<string> = new Set(['tool_call_id', 'name', 'input', 'timeout_ms', 'retry_policy'])

/** Gives the tool call itself, not a copy; throws `INVALID_PAYLOAD` that names the field. */
export function readToolCall(value: JsonValue): ToolCall {
  const fields = objectOf(value, 'a tool call')
  for (const field of Object.keys(fields)) if (!FIELDS.has(field)) refuse(field, 'is not a field of a tool call')
  checkPattern(fields, 'tool_call_id', TOOL_CALL_ID)
  checkPattern(fields, 'name', TOOL_NAME)
  if (fields.input === undefined) refuse('input', 'is missing')
  checkInteger(fields, 'timeout_ms', { least: 1, most: MAX_TOOL_TIMEOUT_MS })
  if (fields.retry_policy !== undefined) checkRetryPolicy(fields.retry_policy)
  return fields as unknown as ToolCall
}

function checkRetryPolicy(policy: JsonValue): void {
  if (!isJsonObject(policy)) refuse('retry_policy', 'is not an object')
  const within = ['retry_policy']
  for (const field of Object.keys(policy)) {
    if (field !== 'max_attempts' && field !== 'backoff_ms') {
      refuse(field, 'is not a field of a retry policy; it has max_attempts and backoff_ms', within)
    }
  }
  checkInteger(policy, 'max_attempts', { least: 1, most: MAX_TOOL_ATTEMPTS }, within)
  if (policy.backoff_ms !== undefined) {
    checkInteger(policy, 'backoff_ms', { least: 0, most: MAX_TOOL_BACKOFF_MS }, within)
  }
}
