import {
  ERROR_TABLE,
  type ErrorCode,
  type ErrorRow,
  fromWireError,
  HermesError,
  type HermesErrorOptions,
  toWireError,
} from '../../src/index.ts'
import type { Vector } from './scene.ts'

/** Codes that the wire text names or needs; the sentence and the hint are for people and may change. */
function table(): Vector[] {
  return Object.entries(ERROR_TABLE as Record<string, ErrorRow>).map(
    ([code, { source, retryable, notStarted, local }]) => ({
      code,
      source,
      retryable,
      not_started: notStarted === true,
      local: local === true,
    }),
  )
}

function told(
  name: string,
  code: ErrorCode,
  options: HermesErrorOptions & { declared?: { name: string; data: unknown } },
): Vector {
  return { name, code, options, payload: toWireError(new HermesError(code, options)) }
}

function written(): Vector[] {
  return [
    told('everything', 'BUSY', { message: '忙 🐝', details: { waiting: 12 }, retryAfterMs: 250 }),
    told('details left out when there are none', 'EXPIRED', { message: 'expired 5 ms ago' }),
    told('a long message is cut', 'HANDLER_ERROR', { message: 'x'.repeat(2000) }),
    told('a code that is only local', 'NO_CANDIDATE', {
      message: 'secret',
      details: { candidates: ['secret'] },
      retryAfterMs: 1,
    }),
    told('a source other than that of the table', 'HANDLER_ERROR', { message: 'the model refused', source: 'llm' }),
    told('an error that the capability declares', 'HANDLER_ERROR', {
      message: 'the test passes',
      declared: { name: 'NOT_REPRODUCED', data: { runs: 5, 提示: '换一个种子' } },
    }),
  ]
}

/** What a receiver makes of the payload of an `error` envelope. */
function read(name: string, payload: unknown): Vector {
  const error = fromWireError(payload)
  return {
    name,
    payload,
    error: {
      code: error.code,
      message: error.message,
      source: error.source,
      retryable: error.retryable,
      details: error.details,
      ...(error.retryAfterMs === undefined ? {} : { retry_after_ms: error.retryAfterMs }),
      ...(error.declared === undefined ? {} : { declared: error.declared.name }),
    },
  }
}

function readings(): Vector[] {
  const plain = { error_code: 'BUSY', error_message: 'busy', error_source: 'receiver', retryable: true }
  return [
    read('a code of the table', plain),
    read('not retryable, because it says so', { ...plain, retryable: false }),
    read('not retryable, because it does not say', { error_code: 'BUSY' }),
    read('retryable is not a boolean', { ...plain, retryable: 'true' }),
    read('details and a time to wait', { ...plain, details: { waiting: 1 }, retry_after_ms: 100 }),
    read('details that are a list', { ...plain, details: [1] }),
    read('a negative time to wait', { ...plain, retry_after_ms: -1 }),
    read('an unknown source', { ...plain, error_source: 'moon' }),
    read('unknown keys', { ...plain, stack: 'secret', more: 1 }),
    read('an unknown code is not retryable', { ...plain, error_code: 'FUTURE_CODE' }),
    read('a declared error with its data', { ...plain, error_code: 'NOT_REPRODUCED', details: { data: { runs: 5 } } }),
    read('a code that is only local', { ...plain, error_code: 'NO_CANDIDATE' }),
    read('the name of a property that every object has', { ...plain, error_code: 'constructor' }),
    read('a code that is not a text', { ...plain, error_code: 7 }),
    read('no object', 'busy'),
    read('null', null),
    read('a message of 2,000 characters', { ...plain, error_message: 'x'.repeat(2000) }),
  ]
}

export function errorVectors(): Vector {
  return {
    about:
      'The error table; the payload of an `error` envelope (`written`), and what a receiver makes of such a payload (`read`). `not_started`: a promise that no handler was started. `local`: said in one process only, never on the wire.',
    table: table(),
    written: written(),
    read: readings(),
  }
}
