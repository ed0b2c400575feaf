import { toBase64url } from '../bytes/parts.ts'
import type { Header } from '../envelope/header-types.ts'
import type { JsonValue } from '../payload/value.ts'

export interface ViewExtra {
  /** Hops taken so far, default 0. */
  hops?: number
  /** Peer id of the sender's node. */
  instance?: string
  signature?: Uint8Array
  /** Place of a chunk in its stream. */
  frame?: { readonly index: number; readonly is_last: boolean }
}

type Optional = 'correlation_id' | 'target_capability' | 'session_id' | 'delegation' | 'in_reply_to'

/** An envelope as people and tools see it; `ENVELOPE_SCHEMA` describes it. What has no value is left out. */
export type EnvelopeView = Omit<Header, 'sender' | Optional> & { readonly [K in Optional]?: NonNullable<Header[K]> } & {
  readonly sender: Header['sender'] & { readonly instance?: string }
  /** `max_hops` less the hops taken. */
  readonly ttl: number
  readonly payload?: JsonValue
  readonly frame?: { readonly index: number; readonly is_last: boolean }
  /** base64url */
  readonly signature?: string
}

/** The JSON view of an envelope. A payload that travels apart (on a stream) is left out by giving undefined. */
export function toJsonView(header: Header, payload: JsonValue | undefined, extra: ViewExtra = {}): EnvelopeView {
  const { hops = 0, instance, signature, frame } = extra
  const present = Object.fromEntries(Object.entries(header).filter(([, value]) => value !== undefined))
  return {
    ...(present as unknown as EnvelopeView),
    sender: instance === undefined ? header.sender : { ...header.sender, instance },
    ttl: Math.max(0, header.max_hops - hops),
    ...(payload === undefined ? {} : { payload }),
    ...(frame === undefined ? {} : { frame }),
    ...(signature === undefined ? {} : { signature: toBase64url(signature) }),
  }
}
