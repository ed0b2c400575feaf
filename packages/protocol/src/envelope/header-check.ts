import { FINGERPRINT } from '../crypto/keys.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { ID_PATTERNS, isAgentId, isCapabilityName, isName } from '../names.ts'
import {
  type CallType,
  defaultExpiry,
  defaultTimeoutMs,
  type Header,
  isAnswer,
  isSequenced,
  MAX_HOPS,
  MAX_PATH,
  type MessageType,
  mayOpenStream,
  mustOpenStream,
  PROTOCOL_VERSION,
  type Priority,
  type Recipient,
} from './header-types.ts'

const TYPES: ReadonlySet<unknown> = new Set([
  'request',
  'response',
  'submit',
  'event',
  'ack',
  'error',
  'heartbeat',
  'cancel',
  'end',
])
const CALL_TYPES: ReadonlySet<unknown> = new Set(['request', 'task', 'stream'])
const CONTENT_TYPES: ReadonlySet<unknown> = new Set(['application/json', 'application/msgpack'])
const HEX_16 = /^[0-9a-f]{16}$/
const HEX_32 = /^[0-9a-f]{32}$/
const HEX_64 = /^[0-9a-f]{64}$/
const VERSION = /^(0|[1-9][0-9]{0,4})\.(0|[1-9][0-9]{0,4})$/
const SCHEMA_VERSION = /^[0-9]{1,8}$/
const [OWN_MAJOR, OWN_MINOR] = PROTOCOL_VERSION.split('.').map(Number) as [number, number]

const KNOWN: ReadonlySet<string> = new Set([
  'version',
  'network',
  'message_id',
  'correlation_id',
  'trace_id',
  'span_id',
  'message_type',
  'sender',
  'recipient',
  'target_capability',
  'call_type',
  'session_id',
  'epoch',
  'recipient_epoch',
  'sequence',
  'ordered',
  'timestamp',
  'expires_at',
  'timeout_ms',
  'priority',
  'attempt',
  'max_hops',
  'path',
  'ack',
  'content_type',
  'schema_version',
  'payload_sha256',
  'payload_size',
  'delegation',
  'in_reply_to',
])

/** Checks the parsed header against the closed schema and the rules between its fields; fills in the defaults. */
export function checkHeader(raw: Record<string, unknown>): Header {
  const newerMinor = checkVersion(raw.version)
  if (!newerMinor) for (const key of Object.keys(raw)) if (!KNOWN.has(key)) refuse(key, 'is not a known field')
  if (!TYPES.has(raw.message_type)) refuse('message_type', 'is not a known message type')
  const type = raw.message_type as MessageType
  const callType = oneOf(raw, 'call_type', CALL_TYPES, 'request') as CallType
  const timestamp = integer(raw, 'timestamp', 0)
  const timeoutMs = integer(raw, 'timeout_ms', 0, defaultTimeoutMs(type, callType))
  const header: Header = {
    version: raw.version as string,
    network: isName(raw.network) ? raw.network : refuse('network', 'is not a network name'),
    message_id: id(raw, 'message_id') ?? refuse('message_id', 'is missing'),
    correlation_id: id(raw, 'correlation_id'),
    trace_id: trace(raw.trace_id, HEX_32, 'trace_id'),
    span_id: trace(raw.span_id, HEX_16, 'span_id'),
    message_type: type,
    sender: sender(raw.sender),
    recipient: recipient(raw.recipient),
    target_capability:
      raw.target_capability === undefined || isCapabilityName(raw.target_capability)
        ? raw.target_capability
        : refuse('target_capability', 'is not a capability name'),
    call_type: callType,
    session_id: id(raw, 'session_id'),
    epoch: integer(raw, 'epoch', 1),
    recipient_epoch: integer(raw, 'recipient_epoch', 0, 0),
    sequence: integer(raw, 'sequence', 0, 0),
    ordered: boolean(raw, 'ordered', true),
    timestamp,
    expires_at: integer(raw, 'expires_at', 0, defaultExpiry(type, timestamp, timeoutMs)),
    timeout_ms: timeoutMs,
    priority: integer(raw, 'priority', 1, 3, 5) as Priority,
    attempt: integer(raw, 'attempt', 1, 1),
    max_hops: integer(raw, 'max_hops', 0, 4, MAX_HOPS),
    path: path(raw.path),
    ack: oneOf(raw, 'ack', ACKS, 'none') as Header['ack'],
    content_type: oneOf(raw, 'content_type', CONTENT_TYPES, 'application/json') as Header['content_type'],
    schema_version: raw.schema_version === undefined ? '1' : pattern(raw, 'schema_version', SCHEMA_VERSION),
    payload_sha256: pattern(raw, 'payload_sha256', HEX_64),
    payload_size: integer(raw, 'payload_size', 0),
    delegation: raw.delegation === undefined ? undefined : pattern(raw, 'delegation', HEX_64),
    in_reply_to: raw.in_reply_to === undefined ? undefined : pattern(raw, 'in_reply_to', HEX_64),
  }
  checkRules(header)
  return header
}

const ACKS: ReadonlySet<unknown> = new Set(['none', 'stored'])

/** What must hold between fields; each of these would otherwise let one meaning be read two ways. */
function checkRules(header: Header): void {
  const { message_type: type, recipient, ack } = header
  const toTopic = 'topic' in recipient
  if (toTopic && type !== 'event') refuse('recipient', 'only an event may go to a topic')
  if ((type === 'request' || type === 'submit') && header.target_capability === undefined) {
    refuse('target_capability', 'is missing')
  }
  if (type === 'event' && !toTopic && header.target_capability === undefined) {
    refuse('target_capability', 'must name the event')
  }
  if ('capability' in recipient && recipient.capability !== header.target_capability) {
    refuse('recipient', 'asks for another capability than target_capability')
  }
  if (isAnswer(type) !== (header.in_reply_to !== undefined)) {
    refuse('in_reply_to', isAnswer(type) ? 'is missing in an answer' : 'may stand only in an answer')
  }
  // What opens a stream has an order of its own: its place in the sender's sequence would never come over a link.
  const unsequenced = !isSequenced(type, recipient)
  if (header.sequence > 0 ? unsequenced || mustOpenStream(header) : !unsequenced && !mayOpenStream(header)) {
    refuse('sequence', header.sequence > 0 ? 'may not be set for this message' : 'must be 1 or more')
  }
  if (ack === 'stored' && (type !== 'event' || toTopic)) refuse('ack', 'may be asked only of an event to one agent')
  if ((type === 'submit') !== (header.call_type === 'task')) {
    refuse('call_type', type === 'submit' ? 'of a submit is task' : 'task belongs to submit')
  }
  if (header.call_type === 'stream' && type !== 'request') refuse('call_type', 'stream belongs to request')
  const mayBeAnyLife = !isSequenced(type, recipient) || type === 'submit' || ack === 'stored'
  if (header.recipient_epoch === 0 ? !mayBeAnyLife : !isSequenced(type, recipient)) {
    refuse(
      'recipient_epoch',
      header.recipient_epoch === 0 ? 'must name the life that is meant' : 'may not be set for this message',
    )
  }
}

function refuse(field: string, why: string): never {
  throw new HermesError('MALFORMED', {
    message: `header: ${field.slice(0, 64)} ${why}`,
    details: { field: field.slice(0, 64) },
  })
}

/** True for a higher minor version of our major. */
function checkVersion(value: unknown): boolean {
  const match = typeof value === 'string' ? VERSION.exec(value) : null
  if (!match) refuse('version', 'is not a version like 1.0')
  const major = Number(match[1])
  if (major !== OWN_MAJOR) {
    throw new HermesError('UNSUPPORTED_VERSION', {
      message: `version ${match[0]} is not supported, this peer speaks ${PROTOCOL_VERSION}`,
      details: { theirs: match[0], ours: [PROTOCOL_VERSION] },
    })
  }
  return Number(match[2]) > OWN_MINOR
}

function id(raw: Record<string, unknown>, field: keyof typeof ID_PATTERNS): string | undefined {
  return raw[field] === undefined ? undefined : pattern(raw, field, ID_PATTERNS[field])
}

function pattern(raw: Record<string, unknown>, field: string, form: RegExp): string {
  const value = raw[field]
  return typeof value === 'string' && form.test(value) ? value : refuse(field, `does not match ${form.source}`)
}

function trace(value: unknown, form: RegExp, field: string): string {
  if (typeof value !== 'string' || !form.test(value)) refuse(field, `does not match ${form.source}`)
  if (/^0+$/.test(value)) refuse(field, 'is all zeros')
  return value
}

function integer(
  raw: Record<string, unknown>,
  field: string,
  least: number,
  standard?: number,
  most = Number.MAX_SAFE_INTEGER,
): number {
  const value = raw[field]
  if (value === undefined && standard !== undefined) return standard
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least || value > most) {
    refuse(field, `is not an integer from ${least} to ${most}`)
  }
  return value
}

function boolean(raw: Record<string, unknown>, field: string, standard: boolean): boolean {
  const value = raw[field]
  if (value === undefined) return standard
  return typeof value === 'boolean' ? value : refuse(field, 'is not a boolean')
}

function oneOf(raw: Record<string, unknown>, field: string, values: ReadonlySet<unknown>, standard: string): unknown {
  const value = raw[field]
  if (value === undefined) return standard
  return values.has(value) ? value : refuse(field, `is not one of ${[...values].join(', ')}`)
}

function closed(value: unknown, field: string, keys: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse(field, 'is not an object')
  const found = Object.keys(value)
  if (found.length !== keys.length || !keys.every((key) => Object.hasOwn(value, key))) {
    refuse(field, `must have exactly ${keys.join(', ')}`)
  }
  return value as Record<string, unknown>
}

function sender(value: unknown): Header['sender'] {
  const { agent_id, key } = closed(value, 'sender', ['agent_id', 'key'])
  if (!isAgentId(agent_id)) refuse('sender', 'has no valid agent_id')
  if (typeof key !== 'string' || !FINGERPRINT.test(key)) refuse('sender', 'has no key fingerprint')
  return { agent_id, key }
}

function recipient(value: unknown): Recipient {
  if (typeof value !== 'object' || value === null) refuse('recipient', 'is not an object')
  if ('agent_id' in value) {
    const { agent_id } = closed(value, 'recipient', ['agent_id'])
    return isAgentId(agent_id) ? { agent_id } : refuse('recipient', 'has no valid agent_id')
  }
  if ('topic' in value) {
    const { topic } = closed(value, 'recipient', ['topic'])
    return isName(topic) ? { topic } : refuse('recipient', 'has no valid topic')
  }
  const { capability, via } = closed(value, 'recipient', ['capability', 'via'])
  if (!isCapabilityName(capability)) refuse('recipient', 'has no valid capability')
  return isAgentId(via) ? { capability, via } : refuse('recipient', 'has no valid via')
}

function path(value: unknown): readonly string[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) refuse('path', 'is not a list')
  if (value.length > MAX_PATH) {
    throw new HermesError('DEPTH_EXCEEDED', {
      message: `path has ${value.length} calls, at most ${MAX_PATH} may wait for one another`,
    })
  }
  for (const step of value) {
    const at = typeof step === 'string' ? step.indexOf('#') : -1
    if (at < 0 || !isAgentId(step.slice(0, at)) || !isCapabilityName(step.slice(at + 1))) {
      refuse('path', 'has a step that is not agent_id#capability')
    }
  }
  return value as string[]
}
