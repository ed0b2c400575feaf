import { domain, join, partOf } from '../bytes.ts'
import { signedBytes } from '../envelope.ts'
import type { Json, JsonMap } from '../json.ts'
import type { Change } from './plan.ts'
import { type SignedHop, type Signer, signHop } from './sign.ts'

const pick = <T>(list: readonly T[], number: number): T => list[number % list.length] as T

/** Bits flipped, bytes taken out, put in or doubled; a needless length; another tag. */
export function changeBytes(bytes: Uint8Array, { kind, at, byte }: Change): Uint8Array {
  const place = at % (bytes.length + 1)
  const head = bytes.subarray(0, place)
  const tail = bytes.subarray(place)
  switch (kind % 9) {
    case 0:
    case 1:
      return join(
        head,
        tail.map((one, index) => (index === 0 ? one ^ (1 << (byte % 8)) : one)),
      )
    case 2:
      return head
    case 3:
      return join(head, tail.subarray(1 + (byte % 8)))
    case 4:
      return join(head, Uint8Array.of(byte), tail)
    case 5:
      return join(head, tail.subarray(0, byte), tail)
    case 6:
      return reframe(bytes, (body) => join(body.subarray(0, place), Uint8Array.of(byte), body.subarray(place)))
    case 7:
      return lengthen(bytes, byte)
    default:
      return reframe(bytes, (body) => join(Uint8Array.of(byte % 5), body.subarray(1)))
  }
}

/** Changes the body and gives it its right length, so that the change is met further inside. */
function reframe(bytes: Uint8Array, change: (body: Uint8Array) => Uint8Array): Uint8Array {
  let start = 0
  while ((bytes[start] ?? 0) >= 0x80) start += 1
  return partOf(change(bytes.subarray(start + 1)))
}

/** A length in more bytes than it needs: that of the frame, or of the header. */
function lengthen(bytes: Uint8Array, byte: number): Uint8Array {
  const spelled = (all: Uint8Array, from: number): Uint8Array => {
    let end = from
    while ((all[end] ?? 0) >= 0x80) end += 1
    return join(all.subarray(0, end), Uint8Array.of((all[end] ?? 0) | 0x80, 0), all.subarray(end + 1))
  }
  return byte % 2 === 0 ? spelled(bytes, 0) : reframe(bytes, (body) => spelled(body, 1))
}

const JSON_PIECES = [
  '"',
  '{"a":1,"a":2}',
  '"\\ud800"',
  '\\u0061',
  '{"__proto__":1}',
  '-0',
  '1e400',
  ' ',
  '[',
  ',',
  '１',
]

export function changePayload(bytes: Uint8Array, change: Change, messagePack: boolean): Uint8Array {
  if (messagePack || change.kind % 2 === 0) return changeBytes(bytes, { ...change, kind: change.kind % 6 })
  const place = change.at % (bytes.length + 1)
  return join(bytes.subarray(0, place), Buffer.from(pick(JSON_PIECES, change.byte)), bytes.subarray(place))
}

export function changeBinding(bound: JsonMap, { kind, at }: Change): JsonMap {
  const size = bound.payload_size as number
  if (kind % 3 === 0) return { ...bound, payload_size: size + 1 }
  if (kind % 3 === 1) return { ...bound, payload_size: Math.max(0, size - 1) }
  const hash = bound.payload_sha256 as string
  const place = at % hash.length
  return {
    ...bound,
    payload_sha256: `${hash.slice(0, place)}${hash[place] === '0' ? '1' : '0'}${hash.slice(place + 1)}`,
  }
}

const OPTIONAL = [
  'correlation_id',
  'session_id',
  'expires_at',
  'timeout_ms',
  'ordered',
  'priority',
  'attempt',
  'max_hops',
]
const MORE = [
  'path',
  'ack',
  'schema_version',
  'delegation',
  'in_reply_to',
  'call_type',
  'recipient_epoch',
  'mood',
  'constructor',
]

const VERSIONS = ['1.1', '1.12', '2.0', '0.9', '01.0', '1', 'x']
const SENDERS = ['pm', 'coder', 'reviewer', 'ghost']

/** A field left out, with another value, or in another place. */
export function changeFields(fields: JsonMap, { kind, at, byte, value }: Change): JsonMap {
  const present = Object.keys(fields)
  const field = pick(present, at)
  const sender = fields.sender as JsonMap
  switch (kind % 10) {
    case 0:
      return Object.fromEntries(Object.entries(fields).filter(([one]) => one !== field))
    case 1:
      return Object.fromEntries([...Object.entries(fields).slice(at % present.length), ...Object.entries(fields)])
    case 2:
      return { ...fields, version: '1.1', [pick(MORE, byte)]: value }
    case 3:
    case 4:
      return { ...fields, [field]: value }
    case 5:
      return { ...fields, version: pick(VERSIONS, byte) }
    case 6:
      return { ...fields, path: Array.from({ length: byte % 9 }, (_, index) => `pm#step-${index}`) }
    case 7:
      return { ...fields, max_hops: byte % 4 }
    case 8:
      return { ...fields, sender: { ...sender, agent_id: pick(SENDERS, byte) } }
    default:
      return { ...fields, [pick([...OPTIONAL, ...MORE], byte)]: value }
  }
}

/** The same or nearly the same fields in other letters. */
export function respell(header: Uint8Array, { kind, at, byte, value }: Change): Uint8Array {
  const text = Buffer.from(header).toString()
  const members = text.slice(1, -1)
  const put = (member: string): Uint8Array => Buffer.from(`{${member},${members}}`)
  const digits = [...text.matchAll(/(?<=":)\d+/g)]
  const renumber = (change: (digits: string) => string): Uint8Array => {
    const [number] = digits.slice(at % Math.max(digits.length, 1))
    if (number === undefined) return header
    return Buffer.from(text.slice(0, number.index) + change(number[0]) + text.slice(number.index + number[0].length))
  }
  switch (kind % 9) {
    case 0:
      return put(pick(['"priority":3', '"sequence":1', '"version":"1.0"', '"epoch":1', '"ordered":true'], byte))
    case 1:
      return Buffer.from(text.replaceAll(pick([':', ',', '{', '}'], byte), (sign) => `${sign} `))
    case 2:
      return renumber((one) =>
        pick([`${one}.0`, `${one}e0`, `0${one}`, `-${one}`, `+${one}`, `${one}9999999999`], byte),
      )
    case 3:
      return Buffer.from(text.replace('c', '\\u0063'))
    case 4:
      return Buffer.from(text.replaceAll(',"', pick([',\n"', '\t,"', ',,"'], byte)))
    case 5:
      return Buffer.from(text.replace('"1.0"', '"1.1"').replace('{', `{"x":${JSON.stringify(value)},`))
    case 6:
      return Buffer.from(
        text.replace('"1.0"', '"1.1"').replace('{', `{"${pick(['__proto__', 'prototype', 'y', 'version'], byte)}":1,`),
      )
    case 7:
      return Buffer.from(
        text.replace('"1.0"', '"1.1"').replace('{', `{"x":${'['.repeat(byte % 64)}${']'.repeat(byte % 64)},`),
      )
    default:
      return changeBytes(header, { place: 'bytes', kind: byte, at, byte, value })
  }
}

/** A signature, or a proof, of other bytes, by another key, or not quite itself. */
export function changeSignature(
  bytes: Uint8Array,
  { kind, at, byte, value }: Change,
  header: Uint8Array,
  signers: ReadonlyMap<string, Signer>,
): Uint8Array {
  const rest = bytes.subarray(64)
  const other = pick([...signers.values()], at)
  switch (kind % 5) {
    case 0:
      return join(other.sign(signedBytes(header)), rest)
    case 1:
      return join(
        (signers.get('pm') as Signer).sign(join(domain(pick(['hop', 'batch', 'proof'], byte)), partOf(header))),
        rest,
      )
    case 2:
      return join(new Uint8Array(64), rest)
    default:
      return changeBytes(bytes, { place: 'bytes', kind: kind % 2, at, byte, value })
  }
}

/** The fields of a hop; none of one that an earlier change has made unreadable. */
function fieldsOf({ json }: SignedHop): JsonMap {
  try {
    return JSON.parse(Buffer.from(json).toString()) as JsonMap
  } catch {
    return {}
  }
}

const HOP_FIELDS = ['forwarder', 'next', 'index', 'timestamp', 'budget_ms', 'previous', 'more']

/** Hops taken out, doubled, swapped, changed with or without a new signature. */
export function changeHops(hops: SignedHop[], change: Change, signers: ReadonlyMap<string, Signer>): SignedHop[] {
  const place = change.at % Math.max(hops.length, 1)
  const hop = hops[place]
  const ghost = signHop(signers.get('coder') as Signer, Buffer.from('{"forwarder":"coder","next":"reviewer"}'))
  if (hop === undefined) return [ghost]
  const replace = (other: SignedHop): SignedHop[] => hops.map((one, index) => (index === place ? other : one))
  const fields = fieldsOf(hop)
  const signer = signers.get(fields.forwarder as string) ?? (signers.get('stranger') as Signer)
  switch (change.kind % 10) {
    case 0:
      return hops.filter((_, index) => index !== place)
    case 1:
      return [...hops, hop]
    case 2:
      return hops.toReversed()
    case 3:
      return replace({ ...hop, signature: pick(hops, place + 1).signature })
    case 4:
      return replace(signHop(pick([...signers.values()], change.byte), hop.json))
    case 5:
      return replace({ ...hop, json: Buffer.from(JSON.stringify({ ...fields, budget_ms: change.byte })) })
    case 6:
      return replace(signHop(signer, respell(hop.json, change)))
    case 7:
      return replace(signHop(signer, Buffer.from(JSON.stringify({ ...fields, previous: 'ab'.repeat(32) }))))
    default: {
      const field: Json = pick(HOP_FIELDS, change.byte)
      return replace(signHop(signer, Buffer.from(JSON.stringify({ ...fields, [field]: change.value }))))
    }
  }
}
