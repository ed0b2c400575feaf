import { createHash, randomBytes } from 'node:crypto'
import type { Actor } from './actors.ts'
import { partOf, type RawStream } from './raw-stream.ts'

export type Json = Record<string, unknown>

/** Everything that a transcript binds; a test may lie about any of it. */
export interface Binding {
  network: string
  protocol: string
  initiator: string
  responder: string
  /** The roles as they are written into the transcript. */
  roles: readonly [string, string]
  /** Raw messages so far, each as it was sent. */
  messages: Uint8Array[]
}

const utf8 = (text: string) => Buffer.from(text, 'utf8')

/** What a `proof` or `welcome` signs, built from the text of the wire contract. */
export function signedOf(
  what: string,
  { network, protocol, initiator, responder, roles, messages }: Binding,
): Uint8Array {
  const texts = [network, protocol, roles[0], initiator, roles[1], responder].map(utf8)
  const pieces = [utf8('hermes-peer/transcript/1'), ...texts, ...messages].map(partOf)
  const transcript = createHash('sha256').update(Buffer.concat(pieces)).digest()
  return Buffer.concat([utf8(`hermes-peer/${what}/1`), Buffer.alloc(1), transcript])
}

export const jsonOf = (bytes: Uint8Array): Json => JSON.parse(Buffer.from(bytes).toString('utf8')) as Json
export const bytesOf = (json: unknown): Uint8Array => utf8(JSON.stringify(json))

/** What an actor says of itself in `hello` and `challenge`. */
export function helloOf(self: Actor, overrides: Json = {}): Json {
  return {
    versions: ['1.0'],
    content_types: ['application/json', 'application/msgpack'],
    features: [],
    network: 'default',
    nonce: randomBytes(32).toString('base64url'),
    agent_id: self.agentId,
    key: Buffer.from(self.key.publicKey.raw).toString('base64url'),
    certificates: [],
    limits: { max_envelope_bytes: 1_048_576, max_in_flight: 256 },
    time: Date.now(),
    ...overrides,
  }
}

export const CHOSEN = { version: '1.0', content_types: ['application/json', 'application/msgpack'], features: [] }

export function proofOf(overrides: Json = {}): Json {
  return { epoch: Date.now(), next_sequence: 1, seen_epoch: 0, manifest_digest: '0'.repeat(64), ...overrides }
}

/** One handshake, a message at a time: each step sends or reads exactly one message, and all it signs can be falsified. */
export interface HandHandshake {
  readonly stream: RawStream
  readonly binding: Binding
  /** Sends any JSON (or bytes) as message 1 or 2. */
  send(message: Json | Uint8Array): void
  /** Reads message 1 or 2. Rejects with the refusal when one comes instead. */
  read(): Promise<Json>
  /** Sends message 3 or 4: the body, then a signature over the transcript that includes it. */
  sendSigned(what: 'proof' | 'welcome', body: Json | Uint8Array, falsify?: Falsify): Uint8Array
  readSigned(): Promise<{ body: Json; raw: Uint8Array }>
}

export interface Falsify {
  /** The domain, where it is not that of the message. */
  domain?: string
  sign?: (message: Uint8Array) => Uint8Array
  /** Changes what is signed, not what is sent. */
  bound?: (binding: Binding) => Binding
}

/** The refusal that came where a message was awaited. */
export class Refused extends Error {
  readonly told: Json
  constructor(told: Json) {
    super(`refused: ${JSON.stringify(told)}`)
    this.told = told
  }
}

export function handHandshake(
  stream: RawStream,
  self: Actor,
  sides: { initiator: string; responder: string; network?: string },
): HandHandshake {
  const binding: Binding = {
    network: sides.network ?? 'default',
    protocol: '/hermes/link/1.0.0',
    initiator: sides.initiator,
    responder: sides.responder,
    roles: ['I', 'R'],
    messages: [],
  }
  const bytes = (message: Json | Uint8Array) => partOf(message instanceof Uint8Array ? message : bytesOf(message))
  const keep = (message: Uint8Array) => {
    binding.messages.push(message)
    return message
  }
  const read = async () => {
    const raw = await stream.part()
    const json = jsonOf(raw)
    if (json.error_code !== undefined) throw new Refused(json)
    return { json, raw: partOf(raw) }
  }
  return {
    stream,
    binding,
    send: (message) => stream.send(keep(bytes(message))),
    async read() {
      const { json, raw } = await read()
      keep(raw)
      return json
    },
    sendSigned(what, body, falsify: Falsify = {}) {
      const { domain = what, bound = (same: Binding) => same } = falsify
      const sign = falsify.sign ?? ((message: Uint8Array) => self.key.sign(message))
      const sent = bytes(body)
      const signature = sign(signedOf(domain, bound({ ...binding, messages: [...binding.messages, sent] })))
      const whole = Buffer.concat([sent, signature])
      stream.send(keep(whole))
      return whole
    },
    async readSigned() {
      const { json, raw } = await read()
      const whole = Buffer.concat([raw, await stream.take(64)])
      return { body: json, raw: keep(whole) }
    },
  }
}
