import { toBase64url } from '../../src/index.ts'
import { hexOf, type Pieces, type Vector } from './scene.ts'

const url = (length: number) => toBase64url(new Uint8Array(length).fill(7))

/** Values that a field may not have; undefined is a field left out. */
const HELLO: Record<string, readonly unknown[]> = {
  versions: [undefined, null, '1.0', [1], ['1'], ['v1.0'], ['1.0.0'], Array.from({ length: 17 }, () => '1.0')],
  content_types: [undefined, null, 'application/json', [1]],
  features: [undefined, null, 'batch', [1], ['Batch'], ['a b'], ['f'.repeat(33)]],
  network: [undefined, null, '', 'Dev', 'a/b'],
  nonce: [undefined, null, '', url(31), url(33), `${url(32)}=`, '+/'.repeat(21)],
  agent_id: [undefined, null, '', 'Pm', 'a//b'],
  key: [undefined, null, '', url(31), url(33), `${url(31)}B`],
  certificates: [undefined, null, 'x', [1], ['='], ['AA', 'AA', 'AA', 'AA']],
  limits: [
    undefined,
    null,
    7,
    [],
    {},
    { max_envelope_bytes: 1 },
    { max_in_flight: 1 },
    { max_envelope_bytes: 0, max_in_flight: 1 },
    { max_envelope_bytes: 1, max_in_flight: -1 },
    { max_envelope_bytes: '1', max_in_flight: 1 },
  ],
  time: [undefined, null, -1, '0'],
}

const CHALLENGE: Record<string, readonly unknown[]> = {
  chosen: [
    undefined,
    null,
    7,
    {},
    { version: '1.0', content_types: ['application/json'] },
    { version: '1', content_types: ['application/json'], features: [] },
    { version: '1.0', content_types: ['application/cbor'], features: [] },
    { version: '1.0', content_types: 'application/json', features: [] },
    { version: '1.0', content_types: ['application/json'], features: ['A'] },
  ],
}

const PROOF: Record<string, readonly unknown[]> = {
  epoch: [undefined, null, 0, -1, '1', 2 ** 53],
  next_sequence: [undefined, null, 0, -1, '1'],
  seen_epoch: [undefined, null, -1, '0'],
  manifest_digest: [undefined, null, '', 'A'.repeat(64), 'a'.repeat(63)],
  revocations: [null, '', 'A'.repeat(64), 'a'.repeat(63), 7],
}

const WELCOME: Record<string, readonly unknown[]> = {
  link_id: [undefined, null, '', '0123456789ABCDEF', '0123456789abcde', '0123456789abcdef0'],
}

function faultsOf(kind: string, fields: object, bad: Record<string, readonly unknown[]>): Vector[] {
  return Object.entries(bad).flatMap(([field, values]) =>
    values.map((value) => ({
      name: `${kind}, ${field}: ${value === undefined ? 'left out' : JSON.stringify(value).slice(0, 60)}`,
      kind,
      text: JSON.stringify({ ...fields, [field]: value }),
      code: 'MALFORMED',
    })),
  )
}

function spellingFaults(fields: object): Vector[] {
  const text = JSON.stringify(fields)
  const no = (name: string, bytes: Pieces): Vector => ({
    name: `hello, ${name}`,
    kind: 'hello',
    bytes,
    code: 'MALFORMED',
  })
  return [
    no('no bytes', ''),
    no('not JSON', hexOf('hello')),
    no('a list', hexOf('[]')),
    no('white space', hexOf(text.replace(',', ', '))),
    no('an escape', hexOf(text.replace('"pm"', '"\\u0070m"'))),
    no('a letter beyond ASCII', hexOf(text.replace('"pm"', '"队长"'))),
    no('a key twice', hexOf(text.replace('{', '{"time":0,'))),
    no('a fraction', hexOf(text.replace(/"time":(\d+)/, '"time":$1.5'))),
    no('a fraction in an unknown key', hexOf(text.replace('{', '{"x":1.5,'))),
    no('__proto__ as an unknown key', hexOf(text.replace('{', '{"__proto__":{},'))),
    no('an unknown key nested too deeply', [
      hexOf('{"x":'),
      { repeat: '5b', times: 33 },
      { repeat: '5d', times: 33 },
      hexOf(text.replace('{', ',')),
    ]),
  ]
}

/** Every message that must be refused as malformed. */
export function handshakeFaults(hello: object, challenge: object, proof: object, welcome: object): Vector[] {
  return [
    ...faultsOf('hello', hello, HELLO),
    ...faultsOf('challenge', challenge, { ...CHALLENGE, nonce: [undefined] }),
    ...faultsOf('proof', proof, PROOF),
    ...faultsOf('welcome', welcome, { ...WELCOME, epoch: [0] }),
    ...spellingFaults(hello),
  ]
}
