import { MAX_ERROR_MESSAGE } from '../errors/hermes-error.ts'
import { MAX_ACTION } from '../payload/conventions.ts'
import {
  MAX_TOOL_ATTEMPTS,
  MAX_TOOL_BACKOFF_MS,
  MAX_TOOL_TIMEOUT_MS,
  TOOL_CALL_ID,
  TOOL_NAME,
} from '../payload/tool-call.ts'
import { closed, hex, id, integer, published, text } from './vocabulary.ts'

// The payload conventions as JSON Schema. The readers in ../payload accept the same, which a test holds them to.

const anything = {}
const object = { type: 'object' } as const
const action = {
  ...text(MAX_ACTION, 1),
  description: 'What the business does, where one capability does several things.',
}

export const REQUEST_SCHEMA = published(
  'request',
  'Payload of a request or submit',
  closed({ input: anything, context: object, constraints: object, action }, ['input']),
)

export const RESPONSE_SCHEMA = published('response', 'Payload of a response', {
  ...closed({ output: anything, status: { enum: ['completed', 'need_confirmation'] }, partial_result: anything }, [
    'output',
    'status',
  ]),
  if: { properties: { status: { const: 'need_confirmation' } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['partial_result'] },
})

export const EVENT_SCHEMA = published('event', 'Payload of an event', closed({ data: anything, action }, ['data']))

export const CANCEL_SCHEMA = published(
  'cancel',
  'Payload of a cancel',
  closed({ message_id: id('message_id'), expires_at: integer(0) }, ['message_id', 'expires_at']),
)

export const HEARTBEAT_SCHEMA = published(
  'heartbeat',
  'Payload of a heartbeat',
  closed({ time: integer(0), reply: { type: 'boolean' }, received: integer(0) }, ['time', 'reply', 'received']),
)

export const ACK_SCHEMA = published(
  'ack',
  'Payload of an ack',
  closed({ status: { const: 'stored' }, task_id: id('task_id') }, ['status']),
)

export const END_SCHEMA = published('end', 'Payload of the end of a stream', {
  ...closed(
    {
      status: { enum: ['completed', 'failed'] },
      count: integer(0),
      running_hash: hex(64),
      output: anything,
      error: object,
    },
    ['status', 'count', 'running_hash'],
  ),
  if: { properties: { status: { const: 'failed' } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['error'], properties: { output: false } },
  else: { properties: { error: false } },
})

export const TOOL_CALL_SCHEMA = published(
  'tool_call',
  'One call of a tool, as a model asks for it',
  closed(
    {
      tool_call_id: { type: 'string', pattern: TOOL_CALL_ID.source },
      name: { type: 'string', pattern: TOOL_NAME.source },
      input: anything,
      timeout_ms: integer(1, MAX_TOOL_TIMEOUT_MS),
      retry_policy: closed(
        { max_attempts: integer(1, MAX_TOOL_ATTEMPTS), backoff_ms: integer(0, MAX_TOOL_BACKOFF_MS) },
        ['max_attempts'],
      ),
    },
    ['tool_call_id', 'name', 'input', 'timeout_ms'],
  ),
)

/** Open: a newer peer may say more. Codes are those of the error table, or the declared names of a capability. */
export const ERROR_SCHEMA = published('error', 'Payload of an error', {
  type: 'object',
  properties: {
    error_code: { type: 'string', pattern: '^[A-Z][A-Z0-9_]{0,63}$' },
    error_message: text(MAX_ERROR_MESSAGE),
    error_source: { enum: ['sender', 'receiver', 'tool', 'llm', 'network', 'policy'] },
    retryable: { type: 'boolean' },
    details: object,
    retry_after_ms: integer(0),
  },
  required: ['error_code', 'error_message', 'error_source', 'retryable'],
} as const)
