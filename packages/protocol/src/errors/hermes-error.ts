import { ERROR_TABLE, type ErrorCode, type ErrorRow, type ErrorSource, isErrorCode } from './codes.ts'

/** One attempt of a call, as told by the error that ended the call. */
export interface AttemptReport {
  readonly agentId: string
  /** A code of the table, or a declared name of the capability. */
  readonly code: string
  readonly message: string
  /** Milliseconds from the start of the call to the end of this attempt. */
  readonly afterMs: number
}

export interface HermesErrorOptions {
  /** Replaces the sentence of the table: says what happened, to what. */
  message?: string
  /** Replaces the hint of the table. */
  hint?: string
  /** Plain JSON data. Never secrets, stacks or file paths when the error goes to a remote. */
  details?: Readonly<Record<string, unknown>>
  retryAfterMs?: number
  /** The piece of work it is about; what to reconcile by. */
  messageId?: string
  traceId?: string
  attempts?: readonly AttemptReport[]
  /** True when another peer said it. */
  remote?: boolean
  /** For codes and declared errors that are not in the table (a newer peer's). */
  source?: ErrorSource
  retryable?: boolean
  cause?: unknown
}

const brand = Symbol.for('hermes-peer/error')

/** The one error class. Switch on `code`; use {@link isHermesError} rather than `instanceof`. */
export class HermesError extends Error {
  override readonly name = 'HermesError'
  readonly code: ErrorCode
  readonly source: ErrorSource
  readonly retryable: boolean
  readonly hint: string
  readonly details: Readonly<Record<string, unknown>>
  readonly remote: boolean
  readonly retryAfterMs: number | undefined
  readonly messageId: string | undefined
  readonly traceId: string | undefined
  readonly attempts: readonly AttemptReport[]
  /** The name under which a capability declares this error, with its data; see `isError`. */
  readonly declared: DeclaredError | undefined

  constructor(code: ErrorCode, options: HermesErrorOptions & { declared?: DeclaredError } = {}) {
    const row: ErrorRow = ERROR_TABLE[code]
    const message = options.message ?? row.sentence
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.source = options.source ?? row.source
    this.retryable = options.retryable ?? row.retryable
    this.hint = options.hint ?? row.hint
    this.details = options.details ?? {}
    this.remote = options.remote ?? false
    this.retryAfterMs = options.retryAfterMs
    this.messageId = options.messageId
    this.traceId = options.traceId
    this.attempts = options.attempts ?? []
    this.declared = options.declared
  }

  get [brand](): true {
    return true
  }

  /** Data of a declared error; undefined for all others. */
  get data(): unknown {
    return this.declared?.data
  }

  /** The same error with more told: options given here win. */
  with(options: HermesErrorOptions & { declared?: DeclaredError }): HermesError {
    return new HermesError(this.code, {
      message: this.message,
      hint: this.hint,
      details: this.details,
      remote: this.remote,
      source: this.source,
      retryable: this.retryable,
      attempts: this.attempts,
      ...(this.retryAfterMs === undefined ? {} : { retryAfterMs: this.retryAfterMs }),
      ...(this.messageId === undefined ? {} : { messageId: this.messageId }),
      ...(this.traceId === undefined ? {} : { traceId: this.traceId }),
      ...(this.declared === undefined ? {} : { declared: this.declared }),
      ...(this.cause === undefined ? {} : { cause: this.cause }),
      ...options,
    })
  }

  /** Any thrown value as a HermesError: itself, a cancellation for an abort, else `fallback` with the cause kept. */
  static from(value: unknown, fallback: ErrorCode = 'INTERNAL'): HermesError {
    if (isHermesError(value)) return value
    if (value instanceof Error && value.name === 'AbortError') return new HermesError('CANCELLED', { cause: value })
    if (value instanceof Error && value.name === 'TimeoutError') return new HermesError('TIMEOUT', { cause: value })
    return new HermesError(fallback, { cause: value })
  }
}

/** A business error that a capability declares. */
export interface DeclaredError {
  readonly name: string
  readonly data: unknown
}

/** Whether a value is a HermesError, also one of another copy of this package. */
export function isHermesError(value: unknown): value is HermesError {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
}

/** The payload of an `error` envelope. */
export interface WireError {
  error_code: string
  error_message: string
  error_source: ErrorSource
  retryable: boolean
  details?: Record<string, unknown>
  retry_after_ms?: number
}

/** Longest `error_message` sent or kept, in UTF-16 units. */
export const MAX_ERROR_MESSAGE = 1024

const SOURCES: ReadonlySet<string> = new Set(['sender', 'receiver', 'tool', 'llm', 'network', 'policy'])

/** What another peer is told of an error: never the cause, a stack, or anything of a code that is only local. */
export function toWireError(error: HermesError): WireError {
  if (error.declared) {
    return {
      error_code: error.declared.name,
      error_message: error.message.slice(0, MAX_ERROR_MESSAGE),
      error_source: error.source,
      retryable: error.retryable,
      details: { data: error.declared.data },
    }
  }
  const row: ErrorRow = ERROR_TABLE[error.code]
  const code: ErrorCode = row.local ? 'HANDLER_ERROR' : error.code
  return {
    error_code: code,
    error_message: (row.local ? ERROR_TABLE.HANDLER_ERROR.sentence : error.message).slice(0, MAX_ERROR_MESSAGE),
    error_source: row.local ? ERROR_TABLE.HANDLER_ERROR.source : error.source,
    retryable: row.local ? false : error.retryable,
    ...(row.local || Object.keys(error.details).length === 0 ? {} : { details: error.details }),
    ...(error.retryAfterMs === undefined ? {} : { retry_after_ms: error.retryAfterMs }),
  }
}

/**
 * Reads what another peer said. Every field is checked; what is missing or of the wrong type is replaced by the safe reading:
 * not retryable. A code of the table keeps the table's `notStarted` meaning; any other one is a declared name or
 * one of a newer peer, and arrives as `HANDLER_ERROR` with `declared`.
 */
export function fromWireError(payload: unknown): HermesError {
  const value = (typeof payload === 'object' && payload !== null ? payload : {}) as Record<string, unknown>
  const code = typeof value.error_code === 'string' ? value.error_code.slice(0, 128) : 'INTERNAL'
  const message = typeof value.error_message === 'string' ? value.error_message.slice(0, MAX_ERROR_MESSAGE) : undefined
  const details =
    typeof value.details === 'object' && value.details !== null && !Array.isArray(value.details)
      ? (value.details as Record<string, unknown>)
      : undefined
  const retryAfterMs =
    typeof value.retry_after_ms === 'number' && Number.isSafeInteger(value.retry_after_ms) && value.retry_after_ms >= 0
      ? value.retry_after_ms
      : undefined
  const known = isErrorCode(code) && !(ERROR_TABLE[code] as ErrorRow).local
  return new HermesError(known ? code : 'HANDLER_ERROR', {
    remote: true,
    // A peer may say that a repetition is in vain, but not that one helps where the table says no.
    retryable: known && ERROR_TABLE[code].retryable && value.retryable === true,
    ...(message === undefined ? {} : { message }),
    ...(details === undefined ? {} : { details }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(typeof value.error_source === 'string' && SOURCES.has(value.error_source)
      ? { source: value.error_source as ErrorSource }
      : {}),
    ...(known ? {} : { declared: { name: code, data: details?.data } }),
  })
}
