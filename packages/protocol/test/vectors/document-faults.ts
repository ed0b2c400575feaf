import {
  concat,
  encodeJson,
  part,
  partInDomain,
  type SignedThing,
  type SigningKey,
  toBase64url,
  toFile,
  toHex,
  utf8,
} from '../../src/index.ts'
import {
  ENDORSEMENT,
  fieldsOf,
  INSTANCE,
  MANIFEST,
  ORGANISATION,
  PRESENCE,
  REVOCATION,
  TEAM,
} from './document-samples.ts'
import { KEYS, type Name, NOW, type Pieces, type Vector } from './scene.ts'

type Kind = 'manifest' | 'presence' | 'certificate' | 'endorsement' | 'revocation'
type Fields = Record<string, unknown>

/** Without capabilities, so that a fault elsewhere is easy to see. */
const manifest = (): Fields => fieldsOf({ ...MANIFEST, capabilities: [] })
const presence = (): Fields => ({ ...fieldsOf(PRESENCE), success_rate_15m: 987 })
const instance = (): Fields => fieldsOf(INSTANCE)
const organisation = (): Fields => fieldsOf(ORGANISATION)
const revocation = (): Fields => fieldsOf(REVOCATION)

// Signed by `coder` like all that is forged here, whoever vouches in the sound one.
const endorsement = (): Fields => fieldsOf({ ...ENDORSEMENT, endorser: 'coder', key: KEYS.coder.publicKey.raw })

const SIGNER: Record<Kind, Name> = {
  manifest: 'coder',
  presence: 'coder',
  certificate: 'coder',
  endorsement: 'coder',
  revocation: 'coder',
}

/** Signs any bytes as a document. */
function signed(what: SignedThing, body: Uint8Array, key: SigningKey): Uint8Array {
  return concat([part(body), key.sign(partInDomain(what, body))])
}

function no(name: string, kind: Kind, code: string, bytes: Uint8Array | Pieces, more: Vector = {}): Vector {
  const shown = bytes instanceof Uint8Array ? toHex(bytes) : bytes
  return {
    name: `${kind}, ${name}`,
    kind,
    signer: SIGNER[kind],
    bytes: shown,
    code,
    ...(kind === 'certificate' ? { now: NOW } : {}),
    ...more,
  }
}

function badFields(
  kind: Kind,
  fields: Fields,
  bad: Record<string, readonly unknown[]>,
  key = KEYS.coder,
  more: Vector = {},
): Vector[] {
  return Object.entries(bad).flatMap(([field, values]) =>
    values.map((value) => {
      const name = `${field}: ${value === undefined ? 'left out' : JSON.stringify(value).slice(0, 60)}`
      return no(name, kind, 'MALFORMED', signed(kind, encodeJson({ ...fields, [field]: value }), key), more)
    }),
  )
}

const url = (length: number) => toBase64url(new Uint8Array(length).fill(7))
const AGENT = [undefined, null, 'Coder', 'a//b']
const CERTIFICATES = [null, 'AA', [7], ['='], ['AA', 'AA', 'AA', 'AA']]
const NATURAL = [undefined, null, -1, 1.5, '1']

function capabilities(): unknown[] {
  const good = { ...MANIFEST.capabilities[1], input_schema: {}, output_schema: {}, description: '' }
  const entry = (changes: Fields) => [{ ...good, ...changes }]
  return [
    undefined,
    null,
    {},
    ['fix-test'],
    [{}],
    entry({ name: 'fix test' }),
    entry({ name: 'fix-test@1' }),
    entry({ call_type: 'batch' }),
    entry({ effects: 'twice' }),
    entry({ description: 'x'.repeat(2049) }),
    entry({ errors: { lower: {} } }),
    entry({ errors: [] }),
    entry({ labels: { a: 1 } }),
    entry({ labels: [] }),
    entry({ constraints: { max_concurrency: 0 } }),
    entry({ constraints: { cost_level: 1.5 } }),
    entry({ constraints: { p99_ms: '1' } }),
    entry({ negative_capabilities: 'none' }),
    Array.from({ length: 257 }, () => ({})),
  ]
}

function contents(): Vector[] {
  return [
    ...badFields('manifest', manifest(), {
      agent_id: AGENT,
      key: [undefined, null, '', url(32), url(31)],
      network: [undefined, 'Dev'],
      serial: NATURAL,
      issued_at: NATURAL,
      expires_at: NATURAL,
      description: [undefined, null, 7, 'x'.repeat(2049)],
      capabilities: capabilities(),
      certificates: CERTIFICATES,
      endorsements: [null, 'AAAA', [7], Array.from({ length: 17 }, () => 'AAAA'), ['A'.repeat(1455)]],
    }),
    ...badFields('endorsement', endorsement(), {
      network: [undefined, 'Dev'],
      endorser: AGENT,
      key: [undefined, null, '', url(31)],
      agent_id: AGENT,
      capability: [undefined, null, 'fix test', 'fix-test@1'],
      issued_at: NATURAL,
      expires_at: NATURAL,
    }),
    ...badFields('presence', presence(), {
      agent_id: AGENT,
      key: [undefined, null, url(31)],
      network: [undefined, 'Dev'],
      epoch: NATURAL,
      counter: NATURAL,
      state: [undefined, null, 'gone', 'UP'],
      addresses: [undefined, null, '/ip4/127.0.0.1', [7], Array.from({ length: 33 }, () => '/ip4/127.0.0.1')],
      capabilities: [undefined, null, ['fix test'], ['fix-test@1']],
      load: [...NATURAL, 101],
      queue_depth: NATURAL,
      success_rate_15m: [...NATURAL, 0.987, 1001],
      manifest_serial: NATURAL,
      certificates: CERTIFICATES,
    }),
    ...badFields('certificate', instance(), {
      kind: [undefined, null, 'person'],
      agent_id: AGENT,
      network: [undefined, 'Dev'],
      serial: NATURAL,
      not_before: NATURAL,
      not_after: NATURAL,
      instance_key: [undefined, null, url(31)],
    }),
    ...badFields(
      'certificate',
      organisation(),
      {
        agent_key: [undefined, null, url(33)],
        team: [undefined, null, 'Finance', ''],
        roles: [undefined, null, 'writer', ['Writer'], [7], Array.from({ length: 33 }, () => 'a')],
      },
      KEYS.organisation,
      { signer: 'organisation' },
    ),
    ...badFields(
      'certificate',
      fieldsOf(TEAM),
      {
        team_key: [undefined, null, url(33)],
        team: [undefined, 'Finance'],
        prefix: [undefined, null, '', 'billing/', 'Billing', '/'],
        roles: [undefined, 'auditor', ['Auditor']],
      },
      KEYS.organisation,
      { signer: 'organisation' },
    ),
    ...badFields('revocation', revocation(), {
      agent_id: AGENT,
      network: [undefined, 'Dev'],
      key: [undefined, null, 'a'.repeat(64), `sha256:${'A'.repeat(64)}`],
      serial: NATURAL,
      reason: [undefined, null, 'x'.repeat(257)],
      signer: [undefined, null, url(31)],
      certificates: CERTIFICATES,
    }),
  ]
}

/** What is wrong with the bytes or the signature, whatever the document. */
function forgeries(kind: Kind, fields: Fields): Vector[] {
  const body = encodeJson(fields)
  const good = signed(kind, body, KEYS.coder)
  const text = Buffer.from(body).toString()
  const flipped = (at: number) =>
    good.map((byte, index) => (index === (at + good.length) % good.length ? byte ^ 1 : byte))
  const others = (
    ['manifest', 'presence', 'certificate', 'endorsement', 'envelope', 'hop', 'revocation'] as const
  ).filter((what) => what !== kind)
  return [
    no('one bit of the signature changed', kind, 'BAD_SIGNATURE', flipped(-1)),
    no(
      'one letter of it changed',
      kind,
      'BAD_SIGNATURE',
      concat([part(utf8(text.replace('coder', 'coden'))), good.subarray(-64)]),
    ),
    no('the same in other white space', kind, 'BAD_SIGNATURE', concat([part(utf8(` ${text}`)), good.subarray(-64)])),
    no('signed by a stranger', kind, 'BAD_SIGNATURE', signed(kind, body, KEYS.stranger)),
    no(
      'signed without its length',
      kind,
      'BAD_SIGNATURE',
      concat([part(body), KEYS.coder.sign(concat([utf8(`hermes-peer/${kind}/1\0`), body]))]),
    ),
    ...others.map((what) => no(`signed as ${what}`, kind, 'BAD_SIGNATURE', signed(what, body, KEYS.coder))),
    no('no bytes', kind, 'MALFORMED', ''),
    no('no signature', kind, 'MALFORMED', good.subarray(0, -64)),
    no('63 bytes of signature', kind, 'MALFORMED', good.subarray(0, -1)),
    no('a byte left over', kind, 'MALFORMED', concat([good, new Uint8Array(1)])),
    no(
      'a length with needless bytes',
      kind,
      'MALFORMED',
      concat([Uint8Array.of(good[0] as number, (good[1] as number) | 0x80, 0), good.subarray(2)]),
    ),
    no('larger than it may be', kind, 'LIMIT_EXCEEDED', 'ffff0f'),
    no('not an object', kind, 'MALFORMED', signed(kind, utf8('[]'), KEYS.coder)),
    no('not JSON', kind, 'INVALID_PAYLOAD', signed(kind, utf8(kind), KEYS.coder)),
    no('a key twice', kind, 'INVALID_PAYLOAD', signed(kind, utf8(text.replace('{', '{"agent_id":"pm",')), KEYS.coder)),
    no('__proto__', kind, 'INVALID_PAYLOAD', signed(kind, utf8(text.replace('{', '{"__proto__":{},')), KEYS.coder)),
    no(
      'a large integer',
      kind,
      'INVALID_PAYLOAD',
      signed(kind, utf8(text.replace('{', '{"more":9007199254740993,')), KEYS.coder),
    ),
  ]
}

const NEUTRAL = toBase64url(Uint8Array.from({ length: 32 }, (_, index) => (index === 0 ? 1 : 0)))

function others(): Vector[] {
  const certificate = signed('certificate', encodeJson(instance()), KEYS.coder)
  const weak = signed('presence', encodeJson({ ...presence(), key: NEUTRAL }), KEYS.coder)
  // R the neutral point and S 0: with a key of small order this holds for any message.
  const constant = concat([weak.subarray(0, -64), Buffer.from(NEUTRAL, 'base64url'), new Uint8Array(32)])
  return [
    no('a key of small order', 'presence', 'BAD_KEY', weak),
    no('a key of small order and the signature that it accepts for anything', 'presence', 'BAD_KEY', constant),
    no('before its time', 'certificate', 'EXPIRED', certificate, { now: INSTANCE.not_before - 1 }),
    no('after its time', 'certificate', 'EXPIRED', certificate, { now: INSTANCE.not_after + 1 }),
  ]
}

/** Files that are not {document, signature}. */
function files(): Vector[] {
  const good = toFile(signed('manifest', encodeJson(manifest()), KEYS.coder))
  const bad: [string, unknown][] = [
    ['null', null],
    ['a list', []],
    ['no signature', { document: good.document }],
    ['no document', { signature: good.signature }],
    ['padding', { ...good, signature: `${good.signature}==` }],
    ['the other alphabet', { ...good, signature: good.signature.replace(/[-_]/g, '+') }],
    ['63 bytes of signature', { ...good, signature: good.signature.slice(0, 84) }],
    [
      'bits beyond the last byte',
      { ...good, signature: `${good.signature.slice(0, -1)}${good.signature.endsWith('B') ? 'C' : 'B'}` },
    ],
    ['bytes that are no text', { ...good, document: 7 }],
  ]
  return bad.map(([name, file]) => ({ name: `file, ${name}`, kind: 'file', file, code: 'MALFORMED' }))
}

/** Every document that must be refused. */
export function documentFaults(): Vector[] {
  return [
    ...contents(),
    ...forgeries('manifest', manifest()),
    ...forgeries('presence', presence()),
    ...forgeries('certificate', instance()),
    ...forgeries('endorsement', endorsement()),
    ...forgeries('revocation', revocation()),
    ...others(),
    ...files(),
  ]
}
