import { MAX_HOPS, MAX_PATH } from '../envelope/header-types.ts'
import {
  ACK_SCHEMA,
  CANCEL_SCHEMA,
  END_SCHEMA,
  ERROR_SCHEMA,
  EVENT_SCHEMA,
  HEARTBEAT_SCHEMA,
  REQUEST_SCHEMA,
  RESPONSE_SCHEMA,
} from './payload-schemas.ts'
import {
  agentId,
  base64url,
  capabilityName,
  closed,
  fingerprint,
  hex,
  id,
  integer,
  name,
  published,
  text,
} from './vocabulary.ts'

const MESSAGE_TYPES = ['request', 'response', 'submit', 'event', 'ack', 'error', 'heartbeat', 'cancel', 'end']

/** Name and title belong to the published form only. */
function part({ $schema, $id, title, ...schema }: { $schema: string; $id: string; title: string }): object {
  return schema
}

/** The payload of one message type follows its convention. */
const payloadOf = (messageType: string, convention: string) => ({
  if: { properties: { message_type: { const: messageType } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { properties: { payload: { $ref: `#/$defs/${convention}` } } },
})

/** The JSON view of an envelope: what CLI, sidecar, logs and recordings show. */
export const ENVELOPE_SCHEMA = published('envelope', 'JSON view of an envelope', {
  ...closed(
    {
      version: { type: 'string', pattern: '^(0|[1-9][0-9]{0,4})\\.(0|[1-9][0-9]{0,4})$' },
      network: name,
      message_id: id('message_id'),
      correlation_id: id('correlation_id'),
      trace_id: hex(32),
      span_id: hex(16),
      message_type: { enum: MESSAGE_TYPES },
      sender: closed({ agent_id: agentId, key: fingerprint, instance: text(128, 1) }, ['agent_id', 'key']),
      recipient: {
        oneOf: [
          closed({ agent_id: agentId }, ['agent_id']),
          closed({ capability: capabilityName, via: agentId }, ['capability', 'via']),
          closed({ topic: name }, ['topic']),
        ],
      },
      target_capability: capabilityName,
      call_type: { enum: ['request', 'task', 'stream'] },
      session_id: id('session_id'),
      epoch: integer(1),
      recipient_epoch: integer(0),
      sequence: integer(0),
      ordered: { type: 'boolean' },
      timestamp: integer(0),
      expires_at: integer(0),
      timeout_ms: integer(0),
      priority: integer(1, 5),
      attempt: integer(1),
      max_hops: integer(0, MAX_HOPS),
      ttl: { ...integer(0, MAX_HOPS), description: 'max_hops less the hops taken' },
      path: { type: 'array', items: text(257, 3), maxItems: MAX_PATH },
      ack: { enum: ['none', 'stored'] },
      content_type: { enum: ['application/json', 'application/msgpack'] },
      schema_version: { type: 'string', pattern: '^[0-9]{1,8}$' },
      payload_sha256: hex(64),
      payload_size: integer(0),
      delegation: hex(64),
      in_reply_to: hex(64),
      payload: {},
      frame: closed({ index: integer(0), is_last: { type: 'boolean' } }, ['index', 'is_last']),
      signature: base64url,
    },
    [
      'version',
      'network',
      'message_id',
      'trace_id',
      'span_id',
      'message_type',
      'sender',
      'recipient',
      'epoch',
      'timestamp',
      'expires_at',
      'ttl',
    ],
  ),
  allOf: [
    payloadOf('request', 'request'),
    payloadOf('submit', 'request'),
    payloadOf('response', 'response'),
    payloadOf('event', 'event'),
    payloadOf('error', 'error'),
    payloadOf('cancel', 'cancel'),
    payloadOf('heartbeat', 'heartbeat'),
    payloadOf('ack', 'ack'),
    payloadOf('end', 'end'),
  ],
  $defs: {
    request: part(REQUEST_SCHEMA),
    response: part(RESPONSE_SCHEMA),
    event: part(EVENT_SCHEMA),
    error: part(ERROR_SCHEMA),
    cancel: part(CANCEL_SCHEMA),
    heartbeat: part(HEARTBEAT_SCHEMA),
    ack: part(ACK_SCHEMA),
    end: part(END_SCHEMA),
  },
})
