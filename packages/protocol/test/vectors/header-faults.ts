import { hexOf, KEYS, OVER_HEADER, type Pieces, type Vector } from './scene.ts'

type Fields = Record<string, unknown>

/** Values that a field may not have; undefined is a field left out. Each must be refused as MALFORMED. */
const BAD_VALUES: Record<string, readonly unknown[]> = {
  version: [undefined, null, 1, '', '1', '1.', '01.0', '1.00', '1.0.0', 'v1.0', 'x'],
  network: [undefined, null, 7, '', 'Dev', 'a/b', 'a@2', 'n'.repeat(65)],
  message_id: [
    undefined,
    null,
    7,
    'msg_short',
    'msg_0123456789abcdef0',
    'corr_0123456789abcdef',
    'msg_0123456789abcde-',
  ],
  correlation_id: [null, 7, 'corr_0123456789abcde', 'msg_0123456789abcdef'],
  trace_id: [undefined, null, 7, '0'.repeat(32), 'A'.repeat(32), 'a'.repeat(31), 'a'.repeat(33), 'g'.repeat(32)],
  span_id: [undefined, null, 7, '0'.repeat(16), 'A'.repeat(16), 'a'.repeat(15), 'a'.repeat(17)],
  message_type: [undefined, null, 1, '', 'REQUEST', 'query', 'hello', '__proto__'],
  sender: [
    undefined,
    null,
    'pm',
    [],
    {},
    { agent_id: 'pm' },
    { agent_id: 'Pm', key: KEYS.pm.publicKey.fingerprint },
    { agent_id: 'a/b/c/d/e', key: KEYS.pm.publicKey.fingerprint },
    { agent_id: 'pm', key: KEYS.pm.publicKey.fingerprint.toUpperCase() },
    { agent_id: 'pm', key: KEYS.pm.publicKey.fingerprint.slice(7) },
    { agent_id: 'pm', key: KEYS.pm.publicKey.fingerprint, instance: 'x' },
  ],
  recipient: [
    undefined,
    null,
    'coder',
    [],
    {},
    { agent_id: 7 },
    { agent_id: 'Coder' },
    { agent_id: 'coder', topic: 'builds' },
    { agent_id: 'coder', via: 'pm' },
    { capability: 'fix-test' },
    { via: 'reviewer' },
    { capability: 'fix-test', via: 'Reviewer' },
    { capability: 'fix-test@1', via: 'reviewer' },
    { capability: 'another', via: 'reviewer' },
    { topic: 'builds' },
    { topic: 'Builds' },
  ],
  target_capability: [undefined, null, 7, '', 'fix test', 'fix-test@1', 'fix-test@0', 'fix-test@', 'a/b'],
  call_type: [null, 7, '', 'task', 'batch'],
  session_id: [null, 7, 'sess_short', 'msg_0123456789abcdef'],
  epoch: [undefined, null, 0, -1, 2 ** 53, '1', true],
  recipient_epoch: [null, 0, -1, 2 ** 53, '1'],
  sequence: [undefined, null, 0, -1, 2 ** 53, '1', '01'],
  ordered: [null, 0, 1, 'true', 'no'],
  timestamp: [undefined, null, -1, 2 ** 53, '2026-01-01'],
  expires_at: [null, -1, 2 ** 53, '60000'],
  timeout_ms: [null, -1, 2 ** 53, '60000'],
  priority: [null, 0, 6, -3, '3'],
  attempt: [null, 0, -1, '1'],
  max_hops: [null, -1, 8, '4'],
  path: [null, 'pm#plan', {}, [7], ['pm'], ['pm#'], ['#plan'], ['Pm#plan'], ['pm#plan@1'], ['pm#plan#x']],
  ack: [null, 'all', 'stored', true],
  content_type: [null, '', 'text/plain', 'application/JSON', 'application/json; charset=utf-8'],
  schema_version: [null, 1, '', 'one', '-1', '1.0', '123456789'],
  payload_sha256: [undefined, null, 7, 'A'.repeat(64), 'a'.repeat(63), 'a'.repeat(65)],
  payload_size: [undefined, null, -1, 2 ** 53, '2'],
  delegation: [null, 7, '', 'A'.repeat(64), 'd'.repeat(63)],
  in_reply_to: [null, 7, 'c'.repeat(64), 'c'.repeat(63)],
  mood: ['good', null],
  traceId: ['4bf92f3577b34da6a3ce929d0e0e4736'],
}

function fieldFaults(plain: Fields): Vector[] {
  return Object.entries(BAD_VALUES).flatMap(([field, values]) =>
    values.map((value) => ({
      name: `${field}: ${value === undefined ? 'left out' : JSON.stringify(value).slice(0, 60)}`,
      text: JSON.stringify({ ...plain, [field]: value }),
      code: 'MALFORMED',
    })),
  )
}

/** Rules between fields. */
function ruleFaults(plain: Fields): Vector[] {
  const { recipient_epoch: _life, sequence: _sequence, target_capability: _capability, ...bare } = plain
  const reply = { in_reply_to: 'c'.repeat(64) }
  const topic = { recipient: { topic: 'builds' } }
  const fault = (name: string, fields: Fields): Vector => ({ name, text: JSON.stringify(fields), code: 'MALFORMED' })
  return [
    ...['response', 'ack', 'error', 'end'].map((message_type) =>
      fault(`${message_type} that answers nothing`, { ...bare, message_type }),
    ),
    ...['response', 'ack', 'error', 'heartbeat', 'cancel'].flatMap((message_type) => {
      const own = message_type === 'heartbeat' || message_type === 'cancel' ? {} : reply
      return [
        fault(`${message_type} with a sequence`, { ...bare, message_type, ...own, sequence: 1 }),
        fault(`${message_type} meant for one life`, { ...bare, message_type, ...own, recipient_epoch: 1 }),
        fault(`${message_type} that asks for an ack`, { ...bare, message_type, ...own, ack: 'stored' }),
        fault(`${message_type} to a topic`, { ...bare, message_type, ...own, ...topic }),
      ]
    }),
    ...['heartbeat', 'cancel', 'event'].map((message_type) =>
      fault(`${message_type} that answers`, { ...plain, message_type, ...reply }),
    ),
    fault('request of a stream with a sequence', { ...plain, call_type: 'stream' }),
    fault('request with a payload of 1 MiB and a byte, and a sequence', { ...plain, payload_size: 1_048_577 }),
    fault('request with a payload that no header makes too large, and no sequence', {
      ...plain,
      sequence: 0,
      payload_size: 1_044_480,
    }),
    fault('request of a stream without a life', { ...plain, call_type: 'stream', sequence: 0, recipient_epoch: 0 }),
    fault('event to a topic with a sequence', { ...bare, message_type: 'event', ...topic, sequence: 1 }),
    fault('event to a topic meant for one life', { ...bare, message_type: 'event', ...topic, recipient_epoch: 1 }),
    fault('event to a topic that asks for an ack', { ...bare, message_type: 'event', ...topic, ack: 'stored' }),
    fault('event to one agent without a life, not acknowledged', {
      ...plain,
      message_type: 'event',
      recipient_epoch: 0,
    }),
    fault('event to one agent without its name', { ...plain, message_type: 'event', target_capability: undefined }),
    fault('event of call type stream', { ...plain, message_type: 'event', call_type: 'stream' }),
    fault('submit of call type request', { ...plain, message_type: 'submit' }),
    fault('submit without a capability', {
      ...plain,
      message_type: 'submit',
      call_type: 'task',
      target_capability: undefined,
    }),
    fault('submit without a sequence', { ...plain, message_type: 'submit', call_type: 'task', sequence: 0 }),
    fault('a field of a higher minor version that this one knows', { ...plain, version: '1.1', priority: 6 }),
    fault('an unknown message type of a higher minor version', { ...plain, version: '1.1', message_type: 'query' }),
  ]
}

function otherCodes(plain: Fields): Vector[] {
  const path = Array.from({ length: 6 }, (_, index) => `pm#step-${index}`)
  const version = (value: string): Vector => ({
    name: `version ${value}`,
    text: JSON.stringify({ ...plain, version: value }),
    code: 'UNSUPPORTED_VERSION',
  })
  return [
    version('2.0'),
    version('0.9'),
    version('10.0'),
    {
      name: 'version 2.0 of a header that is otherwise unknown',
      text: '{"version":"2.0","to":"coder"}',
      code: 'UNSUPPORTED_VERSION',
    },
    { name: 'path of 6 calls', text: JSON.stringify({ ...plain, path }), code: 'DEPTH_EXCEEDED' },
    {
      name: '4,097 bytes',
      bytes: [{ repeat: '78', times: OVER_HEADER }],
      code: 'LIMIT_EXCEEDED',
    },
  ]
}

/** The same header in spellings that are not the one compact spelling. */
function spellingFaults(plain: Fields): Vector[] {
  const text = JSON.stringify(plain)
  const newer = JSON.stringify({ ...plain, version: '1.1' })
  const changed = (name: string, from: string, to: string): Vector => bytes(name, hexOf(text.replace(from, to)))
  const extra = (name: string, member: string): Vector => bytes(name, hexOf(newer.replace(/\}$/, `,${member}}`)))
  const bytes = (name: string, pieces: Pieces): Vector => ({ name, bytes: pieces, code: 'MALFORMED' })
  return [
    bytes('no bytes', ''),
    bytes('null', hexOf('null')),
    bytes('a list', hexOf(`[${text}]`)),
    bytes('a text', hexOf('"header"')),
    bytes('cut off', hexOf(text.slice(0, -1))),
    bytes('a byte after it', hexOf(`${text} `)),
    bytes('a line end after it', hexOf(`${text}\n`)),
    bytes('twice', hexOf(text + text)),
    bytes('a byte order mark', `efbbbf${hexOf(text)}`),
    bytes('UTF-16', Buffer.from(text, 'utf16le').toString('hex')),
    changed('a space before a value', '"sequence":1', '"sequence": 1'),
    changed('a line end between fields', ',"sequence"', ',\n"sequence"'),
    changed('an escape', '"coder"', '"\\u0063oder"'),
    changed('an escaped slash', '"fix-test"', '"fix\\/test"'),
    changed('a letter beyond ASCII', '"coder"', '"codér"'),
    changed('Chinese', '"coder"', '"程序员"'),
    changed('DEL', '"coder"', '"coder\u007f"'),
    changed('a key twice with the same value', '"sequence":1', '"sequence":1,"sequence":1'),
    changed('a key twice, the second counts', '"sequence":1', '"sequence":9,"sequence":1'),
    changed('a key twice inside sender', '"agent_id":"pm"', '"agent_id":"coder","agent_id":"pm"'),
    changed('a number with a fraction', '"sequence":1', '"sequence":1.0'),
    changed('a number with an exponent', '"sequence":1', '"sequence":1e0'),
    changed('a number with a leading zero', '"sequence":1', '"sequence":01'),
    changed('a number with a plus', '"sequence":1', '"sequence":+1'),
    changed('minus zero', '"sequence":1', '"sequence":-0'),
    changed('a number too large to be exact', '"sequence":1', '"sequence":9007199254740993'),
    changed('a comma before the end', '"sequence":1', '"sequence":1,'),
    changed('single quotes', '"coder"', "'coder'"),
    changed('a comment', '"sequence":1', '"sequence":/**/1'),
    changed('NaN', '"sequence":1', '"sequence":NaN'),
    extra('a fraction in an unknown key', '"x":1.5'),
    extra('an exponent in an unknown key', '"x":1e+21'),
    extra('a large integer in an unknown key', '"x":12345678901234567000'),
    extra('__proto__ as an unknown key', '"__proto__":{"ordered":false}'),
    extra('constructor as an unknown key', '"constructor":1'),
    extra('prototype inside an unknown key', '"x":[{"prototype":1}]'),
    extra('an unknown key nested too deeply', `"x":${'['.repeat(33)}${']'.repeat(33)}`),
    extra('an unknown key twice', '"x":1,"x":1'),
  ]
}

/** Every header that must be refused, with its code. */
export function headerFaults(plain: Fields): Vector[] {
  return [...fieldFaults(plain), ...ruleFaults(plain), ...otherCodes(plain), ...spellingFaults(plain)]
}
