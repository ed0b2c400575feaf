import { createHash, randomBytes } from 'node:crypto'
import { encodeHeader, type HeaderDraft, isSequenced, type MessageType, mustOpenStream } from '@hermes-peer/protocol'
import type { Actor } from './actors.ts'
import { partOf } from './raw-stream.ts'

/** Whom an envelope is from and to, as the link knows it. */
export interface Sender {
  readonly self: Actor
  readonly to: string
  readonly toEpoch: number
  readonly epoch: number
  sequence: number
}

/** What an envelope says, and where it is broken. Each field of the header may be replaced. */
export type Draft = { -readonly [K in keyof HeaderDraft]?: HeaderDraft[K] | undefined } & {
  message_type?: MessageType
  /** JSON data, or the bytes themselves. */
  payload?: unknown
  /** Replaces header bytes before they are signed. */
  header?: (bytes: Uint8Array) => Uint8Array
  /** Replaces the payload after the header has bound it. */
  swapPayload?: (bytes: Uint8Array) => Uint8Array
  /** Makes the signature. `signed` is M of the wire contract. */
  sign?: (signed: Uint8Array) => Uint8Array
  /** The whole hops section, with its count in front. */
  hops?: (leaf: string) => Uint8Array
}

export interface Crafted {
  /** The whole frame, its length in front. */
  readonly frame: Uint8Array
  readonly leaf: string
  readonly header: Uint8Array
  readonly payload: Uint8Array
  readonly signature: Uint8Array
  readonly messageId: string
  readonly sequence: number
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

export function newId(prefix: 'msg' | 'corr'): string {
  return `${prefix}_${Array.from(randomBytes(16), (byte) => LETTERS[byte % LETTERS.length]).join('')}`
}

export const domain = (what: string): Uint8Array =>
  Buffer.concat([Buffer.from(`hermes-peer/${what}/1`), Buffer.alloc(1)])

/** M: what the signature of one envelope covers. */
export function signedOfHeader(header: Uint8Array, what = 'envelope'): Uint8Array {
  return Buffer.concat([domain(what), partOf(header)])
}

export function leafOfHeader(header: Uint8Array): string {
  return createHash('sha256').update(Buffer.alloc(1)).update(signedOfHeader(header)).digest('hex')
}

/** A tag 0 frame of parts that need not fit together. */
export function frameOf(
  header: Uint8Array,
  payload: Uint8Array,
  signature: Uint8Array,
  hops: Uint8Array = Buffer.alloc(1),
): Uint8Array {
  return partOf(Buffer.concat([Buffer.alloc(1), partOf(header), partOf(payload), signature, hops]))
}

export function craft(sender: Sender, draft: Draft): Crafted {
  const { payload: data = {}, header: rewrite, swapPayload, sign, hops, ...fields } = draft
  const payload = data instanceof Uint8Array ? data : Buffer.from(JSON.stringify(data))
  const type = fields.message_type ?? 'request'
  const recipient = fields.recipient ?? { agent_id: sender.to }
  const sequenced = isSequenced(type, recipient)
  const streams = mustOpenStream({ call_type: fields.call_type ?? 'request', payload_size: payload.length })
  const sequence = fields.sequence ?? (sequenced && !streams ? sender.sequence++ : 0)
  const timestamp = Date.now()
  const complete: HeaderDraft = {
    network: 'default',
    message_id: newId('msg'),
    trace_id: randomBytes(16).toString('hex'),
    span_id: randomBytes(8).toString('hex'),
    message_type: type,
    sender: { agent_id: sender.self.agentId, key: sender.self.key.publicKey.fingerprint },
    recipient,
    epoch: sender.epoch,
    recipient_epoch: sequenced ? sender.toEpoch : undefined,
    sequence,
    timestamp,
    expires_at: timestamp + 60_000,
    payload_sha256: createHash('sha256').update(payload).digest('hex'),
    payload_size: payload.length,
    ...given(fields),
  }
  const plain = encodeHeader(complete)
  const header = rewrite ? rewrite(plain) : plain
  const signature = (sign ?? ((signed: Uint8Array) => sender.self.key.sign(signed)))(signedOfHeader(header))
  const leaf = leafOfHeader(header)
  return {
    frame: frameOf(header, swapPayload ? swapPayload(payload) : payload, signature, hops?.(leaf)),
    leaf,
    header,
    payload,
    signature,
    messageId: complete.message_id,
    sequence,
  }
}

/** Without what is undefined, so that it does not hide a default. */
function given(fields: object): Partial<HeaderDraft> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
