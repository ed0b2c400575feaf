import { isMap, parseCompact } from './compact.ts'
import type { Json, JsonMap } from './json.ts'
import * as names from './names.ts'
import { Refused } from './refused.ts'

export type Header = JsonMap

const MAX_HEADER = 4 * 1024
const MAX_ENVELOPE = 1024 * 1024

type Test = (value: Json) => boolean

const no = (why: string): never => {
  throw new Refused('header', why)
}

const oneOf =
  (...allowed: string[]): Test =>
  (value) =>
    allowed.includes(value as string)

const integer =
  (from = 0, to = Number.MAX_SAFE_INTEGER): Test =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to

const closed = (value: Json, ...keys: string[]): value is JsonMap =>
  isMap(value) && Object.keys(value).length === keys.length && keys.every((key) => Object.hasOwn(value, key))

const isSender: Test = (value) =>
  closed(value, 'agent_id', 'key') && names.isAgentId(value.agent_id) && names.isFingerprint(value.key)

const isRecipient: Test = (value) =>
  (closed(value, 'agent_id') && names.isAgentId(value.agent_id)) ||
  (closed(value, 'capability', 'via') && names.isCapability(value.capability) && names.isAgentId(value.via)) ||
  (closed(value, 'topic') && names.isName(value.topic))

// Every field of the table: what it may be, and what its absence means (nothing here: it must be there).
const REQUIRED: { [field: string]: Test } = {
  network: names.isName,
  message_id: names.isMessageId,
  trace_id: names.isTraceId,
  span_id: names.isSpanId,
  message_type: oneOf('request', 'response', 'submit', 'event', 'ack', 'error', 'heartbeat', 'cancel', 'end'),
  sender: isSender,
  recipient: isRecipient,
  epoch: integer(1),
  timestamp: integer(),
  payload_sha256: names.isHash,
  payload_size: integer(),
}

const OPTIONAL: { [field: string]: Test } = {
  correlation_id: names.isCorrelationId,
  target_capability: names.isCapability,
  session_id: names.isSessionId,
  expires_at: integer(),
  timeout_ms: integer(),
  delegation: names.isHash,
  in_reply_to: names.isHash,
}

const DEFAULTED: { [field: string]: [Test, Json] } = {
  call_type: [oneOf('request', 'task', 'stream'), 'request'],
  recipient_epoch: [integer(), 0],
  sequence: [integer(), 0],
  ordered: [(value) => typeof value === 'boolean', true],
  priority: [integer(1, 5), 3],
  attempt: [integer(1), 1],
  max_hops: [integer(0, 7), 4],
  path: [(value) => Array.isArray(value) && value.every(names.isPathEntry), []],
  ack: [oneOf('none', 'stored'), 'none'],
  content_type: [oneOf('application/json', 'application/msgpack'), 'application/json'],
  schema_version: [(value) => typeof value === 'string' && /^[0-9]{1,8}$/.test(value), '1'],
}

const KNOWN = new Set(['version', ...Object.keys(REQUIRED), ...Object.keys(OPTIONAL), ...Object.keys(DEFAULTED)])

/** The header with its defaults filled in. */
export function readHeader(bytes: Uint8Array): Header {
  if (bytes.length > MAX_HEADER) throw new Refused('size', `a header of ${bytes.length} bytes`)
  const given = parseCompact(bytes, 'header')
  const minor = readVersion(given.version)
  const header: Header = { version: given.version as string }
  for (const [field, test] of Object.entries(REQUIRED)) header[field] = check(field, test, given[field])
  for (const [field, test] of Object.entries(OPTIONAL)) {
    if (given[field] !== undefined) header[field] = check(field, test, given[field])
  }
  for (const [field, [test, absent]] of Object.entries(DEFAULTED)) {
    header[field] = given[field] === undefined ? absent : check(field, test, given[field])
  }
  if (minor === 0) {
    const strange = Object.keys(given).find((key) => !KNOWN.has(key))
    if (strange !== undefined) no(`unknown key ${strange}`)
  }
  if ((header.path as Json[]).length > 5) throw new Refused('depth', 'a path of more than 5')
  fillTimes(header)
  checkTogether(header)
  return header
}

function check(field: string, test: Test, value: Json | undefined): Json {
  if (value === undefined) return no(`${field} is missing`)
  return test(value) ? value : no(`${field} is ${JSON.stringify(value)}`)
}

/** The minor version; unknown keys of a higher one are to be ignored. */
function readVersion(version: Json | undefined): number {
  const match = typeof version === 'string' ? /^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$/.exec(version) : null
  if (match === null) return no('version is not major.minor')
  if (match[1] !== '1') throw new Refused('version', `version ${version}`)
  return Number(match[2])
}

function fillTimes(header: Header): void {
  const type = header.message_type
  if (header.timeout_ms === undefined) {
    header.timeout_ms = type === 'submit' ? 10_000 : header.call_type === 'stream' ? 300_000 : 60_000
  }
  if (header.expires_at === undefined) {
    const life = type === 'submit' ? 24 * 3_600_000 : (header.timeout_ms as number)
    header.expires_at = (header.timestamp as number) + life
  }
}

const ANSWERS = ['response', 'ack', 'error', 'end']

export const isAnswer = (header: Header): boolean => ANSWERS.includes(header.message_type as string)

/** Rules between fields: those of the text, and those that the vectors add to it. */
function checkTogether(header: Header): void {
  const type = header.message_type as string
  const { topic, capability } = header.recipient as JsonMap
  const event = type === 'event'
  if (topic !== undefined && !event) no('only an event goes to a topic')
  const addressed = (type === 'request' || type === 'submit' || event) && topic === undefined
  const size = header.payload_size as number
  const streams = header.call_type === 'stream' || size > MAX_ENVELOPE
  // Whether such a payload fits beside its header is not for this rule: both ways may be right.
  const either = size > MAX_ENVELOPE - MAX_HEADER
  if (header.sequence !== 0 && (!addressed || streams)) no(`sequence ${header.sequence} on ${type}`)
  if (header.sequence === 0 && addressed && !streams && !either) no(`no sequence on ${type}`)
  if (header.ack === 'stored' && !(event && addressed)) no('ack is for an event to one agent')
  const stored = type === 'submit' || (event && header.ack === 'stored')
  if (header.recipient_epoch !== 0 && !addressed) no(`recipient_epoch on ${type}`)
  if (header.recipient_epoch === 0 && addressed && !stored) no(`recipient_epoch is 0 on ${type}`)
  if (addressed && header.target_capability === undefined) no(`${type} without a capability`)
  if (capability !== undefined && capability !== header.target_capability) no('two capabilities')
  if (isAnswer(header) !== (header.in_reply_to !== undefined)) no(`in_reply_to on ${type}`)
  if ((type === 'submit') !== (header.call_type === 'task')) no(`${type} of call type ${header.call_type}`)
  if (header.call_type === 'stream' && type !== 'request') no(`${type} of call type stream`)
}
