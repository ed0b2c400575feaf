import { decodeHeader, encodeHeader, type HeaderDraft } from '../../src/index.ts'
import { headerFaults } from './header-faults.ts'
import { EMPTY_PAYLOAD, idOf, KEYS, NETWORK, NOW, requestDraft, UNSEQUENCED, type Vector } from './scene.ts'

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

/** What the encoder writes for a draft, and what it means with every default filled in. */
function written(name: string, changes: Partial<HeaderDraft>): Vector {
  const draft = requestDraft(changes)
  const bytes = encodeHeader(draft)
  return { name, draft, text: text(bytes), header: decodeHeader(bytes) }
}

/** A legal header that the encoder would have written in other words. */
function spelled(name: string, fields: object): Vector {
  const spelling = JSON.stringify(fields)
  return { name, text: spelling, header: decodeHeader(Buffer.from(spelling)) }
}

const ANSWERED = 'c0ffee'.padEnd(64, '0')
const answer = (message_type: HeaderDraft['message_type']) => ({
  ...UNSEQUENCED,
  message_type,
  in_reply_to: ANSWERED,
  correlation_id: idOf('corr', 'headers'),
})

function types(): Vector[] {
  return [
    written('request', {}),
    written('request of a stream', { call_type: 'stream', sequence: undefined }),
    written('request with a payload of 1 MiB and a byte, which opens a stream', {
      sequence: undefined,
      payload_size: 1_048_577,
    }),
    written('request with a payload of 1 MiB, for a link', { payload_size: 1_048_576 }),
    written('request with a payload of 1 MiB, which opens a stream with its header', {
      sequence: undefined,
      payload_size: 1_048_576,
    }),
    written('request with the smallest payload that may open a stream', {
      sequence: undefined,
      payload_size: 1_044_481,
    }),
    written('submit', { message_type: 'submit', call_type: 'task', recipient_epoch: 0 }),
    written('submit meant for one life', { message_type: 'submit', call_type: 'task' }),
    written('event to one agent', { message_type: 'event', target_capability: 'build-broken' }),
    written('event to one agent with a stored ack, for any life', {
      message_type: 'event',
      ack: 'stored',
      recipient_epoch: 0,
    }),
    written('event to a topic', { ...UNSEQUENCED, message_type: 'event', recipient: { topic: 'builds' } }),
    written('response', answer('response')),
    written('ack', answer('ack')),
    written('error', answer('error')),
    written('end', answer('end')),
    written('heartbeat', { ...UNSEQUENCED, message_type: 'heartbeat', priority: 5 }),
    written('cancel', { ...UNSEQUENCED, message_type: 'cancel' }),
    written('request by capability', { recipient: { capability: 'fix-test', via: 'reviewer' } }),
    written('request of another major', { target_capability: 'fix-test@2' }),
    written('request of what every peer offers', { target_capability: 'hermes.manifest', priority: 5 }),
  ]
}

const EVERYTHING = {
  version: '1.0',
  network: NETWORK,
  message_id: idOf('msg', 'everything'),
  correlation_id: idOf('corr', 'everything'),
  session_id: idOf('sess', 'everything'),
  recipient: { capability: 'fix-test@2', via: 'billing/ledger' },
  target_capability: 'fix-test@2',
  call_type: 'stream',
  sequence: undefined,
  ordered: false,
  timeout_ms: 90_000,
  priority: 5,
  attempt: 2,
  max_hops: 7,
  path: ['pm#plan', 'billing/ledger#sum@3', 'coder#fix-test', 'reviewer#review', 'tester-a#run-test'],
  content_type: 'application/msgpack',
  schema_version: '12',
  delegation: 'd'.repeat(64),
} satisfies Partial<HeaderDraft>

const LONG_ID = `${'a'.repeat(64)}/${'b'.repeat(63)}`
const MOST = Number.MAX_SAFE_INTEGER

function bounds(): Vector[] {
  return [
    written('every field', EVERYTHING),
    written('the least of every number', {
      epoch: 1,
      recipient_epoch: 1,
      sequence: 1,
      timestamp: 0,
      expires_at: 0,
      timeout_ms: 0,
      priority: 1,
      attempt: 1,
      max_hops: 0,
      payload_size: 0,
      schema_version: '0',
    }),
    written('the most of every number', {
      epoch: MOST,
      recipient_epoch: MOST,
      sequence: undefined,
      timestamp: MOST,
      expires_at: MOST,
      timeout_ms: MOST,
      priority: 5,
      attempt: MOST,
      max_hops: 7,
      payload_size: MOST,
      schema_version: '99999999',
    }),
    written('the most of a sequence', { sequence: MOST }),
    written('the longest names', {
      network: 'n'.repeat(64),
      sender: { agent_id: LONG_ID, key: KEYS.pm.publicKey.fingerprint },
      recipient: { agent_id: 'a/b/c/d' },
      target_capability: `${'c'.repeat(64)}@999999`,
    }),
    written('what equals its default is left out', {
      version: '1.0',
      call_type: 'request',
      ordered: true,
      timeout_ms: 60_000,
      priority: 3,
      attempt: 1,
      max_hops: 4,
      path: [],
      ack: 'none',
      content_type: 'application/json',
      schema_version: '1',
    }),
    written('the default time of a stream', { call_type: 'stream', sequence: undefined, timeout_ms: 300_000 }),
    written('the default time of a submit', { message_type: 'submit', call_type: 'task', timeout_ms: 10_000 }),
    written('a time that is the default of another type', { timeout_ms: 10_000 }),
    written('an expiry later than the time it has', { expires_at: NOW + 90_000 }),
    written('an expiry that follows from its own time', { timeout_ms: 90_000, expires_at: NOW + 90_000 }),
    written('the default expiry of a submit, 24 hours', {
      message_type: 'submit',
      call_type: 'task',
      expires_at: NOW + 86_400_000,
    }),
  ]
}

/** Fields of the plain request as they stand in its header. */
const plainFields = (): Record<string, unknown> => JSON.parse(text(encodeHeader(requestDraft())))

function spellings(): Vector[] {
  const fields = plainFields()
  const newer = { ...fields, version: '1.1', mood: 'good', more: { list: [1, null, true, -7], text: 'a b' } }
  const long = { ...fields, version: '1.1', padding: '' }
  return [
    spelled('defaults written out', {
      ...fields,
      call_type: 'request',
      expires_at: NOW + 60_000,
      ordered: true,
      timeout_ms: 60_000,
      priority: 3,
      attempt: 1,
      max_hops: 4,
      path: [],
      ack: 'none',
      content_type: 'application/json',
      schema_version: '1',
    }),
    spelled('recipient_epoch and sequence 0 written out', {
      ...fields,
      message_type: 'heartbeat',
      target_capability: undefined,
      recipient_epoch: 0,
      sequence: 0,
    }),
    spelled('keys in another order', Object.fromEntries(Object.entries(fields).reverse())),
    spelled('unknown keys of a higher minor version', newer),
    spelled('exactly 4,096 bytes', { ...long, padding: 'x'.repeat(4096 - JSON.stringify(long).length) }),
  ]
}

export function headerVectors(): Vector {
  return {
    about:
      'Headers. `text` is the header as sent (ASCII); `header` its meaning with every default filled in. Where `draft` is given, an encoder that leaves out defaults and keeps the order of the table writes `text`.',
    empty_payload: text(EMPTY_PAYLOAD),
    accepted: [...types(), ...bounds(), ...spellings()],
    refused: headerFaults(plainFields()),
  }
}
