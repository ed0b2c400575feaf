import {
  bindPayload,
  encodeHeader,
  encodePayload,
  encodeSingle,
  type HeaderDraft,
  LIMITS,
  leafOf,
  type SignedHop,
  type SigningKey,
  sha256,
  signedBytesOf,
  signingKey,
  toHex,
  utf8,
} from '../../src/index.ts'

/** One entry of a vector file. */
export type Vector = Record<string, unknown>

export const NETWORK = 'dev-team'
/** 2026-01-01T00:00:00Z */
export const NOW = 1_767_225_600_000

const AGENTS = ['pm', 'coder', 'tester-a', 'reviewer', 'billing/ledger', 'organisation', 'stranger'] as const
export type Name = (typeof AGENTS)[number]

/** Fixed keys: the seed of each is the hash of its name, so that every run signs alike. */
export const KEYS = Object.fromEntries(
  AGENTS.map((name) => [name, signingKey(sha256(utf8(`hermes-peer/vectors/${name}`)))]),
) as Record<Name, SigningKey>

export const keyOf = (name: Name): SigningKey => KEYS[name]

/** An id with its letters taken from a text, so that each vector has its own and always the same. */
export function idOf(prefix: 'msg' | 'corr' | 'sess', text: string): string {
  return `${prefix}_${toHex(sha256(utf8(text))).slice(0, 16)}`
}

export const EMPTY_PAYLOAD = utf8('{}')

/** A request of `pm` to `coder`, whole and correct; what a vector is about is changed in it. */
export function requestDraft(changes: Partial<HeaderDraft> = {}): HeaderDraft {
  return {
    network: NETWORK,
    message_id: 'msg_0123456789abcdef',
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    span_id: '00f067aa0ba902b7',
    message_type: 'request',
    sender: { agent_id: 'pm', key: KEYS.pm.publicKey.fingerprint },
    recipient: { agent_id: 'coder' },
    target_capability: 'fix-test',
    epoch: NOW - 60_000,
    recipient_epoch: NOW - 50_000,
    sequence: 1,
    timestamp: NOW,
    expires_at: NOW + 60_000,
    ...bindPayload(EMPTY_PAYLOAD),
    ...changes,
  }
}

/** Fields of a request that messages of other types do not have. */
export const UNSEQUENCED = { target_capability: undefined, recipient_epoch: undefined, sequence: undefined } as const

export interface Envelope {
  readonly header: Uint8Array
  readonly payload: Uint8Array
  readonly m: Uint8Array
  readonly leaf: string
  readonly signature: Uint8Array
}

/** Binds, encodes and signs; `value` is the payload's data. */
export function envelopeOf(draft: HeaderDraft, value: unknown = {}, signer: SigningKey = KEYS.pm): Envelope {
  return envelopeWith(draft, encodePayload(draft.content_type ?? 'application/json', value), signer)
}

/** The same around payload bytes that need not be data. */
function envelopeWith(draft: HeaderDraft, payload: Uint8Array, signer: SigningKey = KEYS.pm): Envelope {
  const header = encodeHeader({ ...draft, ...bindPayload(payload) })
  const m = signedBytesOf(header)
  return { header, payload, m, leaf: leafOf(header), signature: signer.sign(m) }
}

/** An envelope that opens a stream: the draft binds a payload that travels apart. */
export function envelopeOpening(draft: HeaderDraft, signer: SigningKey = KEYS.pm): Envelope {
  const header = encodeHeader(draft)
  const m = signedBytesOf(header)
  return { header, payload: new Uint8Array(0), m, leaf: leafOf(header), signature: signer.sign(m) }
}

export function frameOf({ header, payload, signature }: Envelope, hops: readonly SignedHop[] = []): Uint8Array {
  return encodeSingle({ header, payload, signature, hops })
}

/** Bytes as vectors write them: hex; or pieces of hex, some of them repeated, where they are many. */
export type Pieces = string | readonly (string | { repeat: string; times: number })[]

export const hexOf = (text: string): string => toHex(utf8(text))

export function bytesOf(pieces: Pieces): Uint8Array {
  const list = typeof pieces === 'string' ? [pieces] : pieces
  return Buffer.concat(
    list.map((piece) =>
      typeof piece === 'string' ? Buffer.from(piece, 'hex') : Buffer.from(piece.repeat.repeat(piece.times), 'hex'),
    ),
  )
}

/** Longer than any limit of a single field, for what must not be read to its end. */
export const OVER_HEADER = LIMITS.header + 1
