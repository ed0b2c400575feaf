import { ID_PATTERNS } from '../names.ts'
import { checkInteger, checkPattern, objectOf, refuse } from './fields.ts'
import { isJsonObject, type JsonObject, type JsonValue } from './value.ts'

/** Payload of `request` and `submit`. */
export interface RequestPayload {
  readonly input: JsonValue
  /** What the work belongs to: references, a delegation. */
  readonly context?: JsonObject
  /** What the work must keep to. */
  readonly constraints?: JsonObject
  /** What the business does, where one capability does several things. */
  readonly action?: string
}

export type ResponseStatus = 'completed' | 'need_confirmation'

/** Payload of `response`. */
export interface ResponsePayload {
  readonly output: JsonValue
  readonly status: ResponseStatus
  /** What there is so far; the plan that waits for confirmation. Always there with `need_confirmation`. */
  readonly partial_result?: JsonValue
}

/** Payload of `event`. */
export interface EventPayload {
  readonly data: JsonValue
  readonly action?: string
}

/** Payload of `cancel`. */
export interface CancelPayload {
  readonly message_id: string
  /** Until when the id stays refused, ms since the epoch. */
  readonly expires_at: number
}

/** Payload of `heartbeat`. */
export interface HeartbeatPayload {
  /** Wall clock of the sender, ms since the epoch. */
  readonly time: number
  /** Whether an answer is wanted at once. */
  readonly reply: boolean
  /** Frames received on this link so far. */
  readonly received: number
}

const NATURAL = { least: 0 }
/** Longest `action`, in UTF-16 units. */
export const MAX_ACTION = 128

/** Each reader gives the payload itself, not a copy; throws `INVALID_PAYLOAD` that names the field. */
export function readRequestPayload(payload: JsonValue): RequestPayload {
  const fields = objectOf(payload, 'a request')
  for (const field in fields) {
    if (field === 'input') continue
    if (field === 'context' || field === 'constraints') checkObject(fields, field)
    else if (field === 'action') checkAction(fields)
    else refuse(field, 'is not a field of a request; it has input, context, constraints and action')
  }
  if (fields.input === undefined) refuse('input', 'is missing')
  return fields as unknown as RequestPayload
}

export function readResponsePayload(payload: JsonValue): ResponsePayload {
  const fields = objectOf(payload, 'a response')
  for (const field in fields) {
    if (field !== 'output' && field !== 'status' && field !== 'partial_result') {
      refuse(field, 'is not a field of a response; it has output, status and partial_result')
    }
  }
  if (fields.output === undefined) refuse('output', 'is missing')
  if (fields.status === 'need_confirmation') {
    if (fields.partial_result === undefined) refuse('partial_result', 'is missing: it holds what is to be confirmed')
  } else if (fields.status !== 'completed') {
    refuse('status', 'is not completed or need_confirmation')
  }
  return fields as unknown as ResponsePayload
}

export function readEventPayload(payload: JsonValue): EventPayload {
  const fields = objectOf(payload, 'an event')
  for (const field in fields) {
    if (field === 'data') continue
    if (field === 'action') checkAction(fields)
    else refuse(field, 'is not a field of an event; it has data and action')
  }
  if (fields.data === undefined) refuse('data', 'is missing')
  return fields as unknown as EventPayload
}

export function readCancelPayload(payload: JsonValue): CancelPayload {
  const fields = objectOf(payload, 'a cancel')
  for (const field in fields) {
    if (field !== 'message_id' && field !== 'expires_at') {
      refuse(field, 'is not a field of a cancel; it has message_id and expires_at')
    }
  }
  checkPattern(fields, 'message_id', ID_PATTERNS.message_id)
  checkInteger(fields, 'expires_at', NATURAL)
  return fields as unknown as CancelPayload
}

export function readHeartbeatPayload(payload: JsonValue): HeartbeatPayload {
  const fields = objectOf(payload, 'a heartbeat')
  for (const field in fields) {
    if (field !== 'time' && field !== 'reply' && field !== 'received') {
      refuse(field, 'is not a field of a heartbeat; it has time, reply and received')
    }
  }
  checkInteger(fields, 'time', NATURAL)
  if (typeof fields.reply !== 'boolean') refuse('reply', 'is not true or false')
  checkInteger(fields, 'received', NATURAL)
  return fields as unknown as HeartbeatPayload
}

function checkObject(fields: JsonObject, field: string): void {
  if (!isJsonObject(fields[field])) refuse(field, 'is not an object')
}

function checkAction(fields: JsonObject): void {
  const { action } = fields
  if (typeof action !== 'string' || action === '' || action.length > MAX_ACTION) {
    refuse('action', `is not a text of 1 to ${MAX_ACTION} characters`)
  }
}
