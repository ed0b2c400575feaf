import { LIMITS } from '../limits.ts'

export type MessageType = 'request' | 'response' | 'submit' | 'event' | 'ack' | 'error' | 'heartbeat' | 'cancel' | 'end'

export type CallType = 'request' | 'task' | 'stream'
export type Priority = 1 | 2 | 3 | 4 | 5
export type ContentType = 'application/json' | 'application/msgpack'

export type Recipient =
  | { readonly agent_id: string }
  | { readonly capability: string; readonly via: string }
  | { readonly topic: string }

/** The header of one envelope with every default filled in. Names, types and meanings are those of the wire contract. */
export interface Header {
  readonly version: string
  readonly network: string
  readonly message_id: string
  readonly correlation_id: string | undefined
  readonly trace_id: string
  readonly span_id: string
  readonly message_type: MessageType
  readonly sender: { readonly agent_id: string; readonly key: string }
  readonly recipient: Recipient
  readonly target_capability: string | undefined
  readonly call_type: CallType
  readonly session_id: string | undefined
  readonly epoch: number
  readonly recipient_epoch: number
  readonly sequence: number
  readonly ordered: boolean
  readonly timestamp: number
  readonly expires_at: number
  readonly timeout_ms: number
  readonly priority: Priority
  readonly attempt: number
  readonly max_hops: number
  readonly path: readonly string[]
  readonly ack: 'none' | 'stored'
  readonly content_type: ContentType
  readonly schema_version: string
  readonly payload_sha256: string
  readonly payload_size: number
  readonly delegation: string | undefined
  readonly in_reply_to: string | undefined
}

type Always =
  | 'network'
  | 'message_id'
  | 'trace_id'
  | 'span_id'
  | 'message_type'
  | 'sender'
  | 'recipient'
  | 'epoch'
  | 'timestamp'
  | 'payload_sha256'
  | 'payload_size'

/** A header as its maker gives it: what has a default may be left out. */
export type HeaderDraft = Pick<Header, Always> & {
  readonly [K in Exclude<keyof Header, Always>]?: Header[K] | undefined
}

/** The protocol version spoken, and its parts. */
export const PROTOCOL_VERSION = '1.0'
/** Deepest `path`: so many calls may wait for one another. */
export const MAX_PATH = 5
export const MAX_HOPS = 7
/** Furthest `expires_at` ahead of now that is accepted, ms. */
export const MAX_LIFE_MS = 24 * 60 * 60 * 1000

/** Budget that a message type (and call type) has when `timeout_ms` is left out, ms. */
export function defaultTimeoutMs(type: MessageType, callType: CallType): number {
  if (type === 'submit') return 10_000
  return callType === 'stream' ? 300_000 : 60_000
}

/** When a message expires that does not say so, ms since the epoch. */
export function defaultExpiry(type: MessageType, timestamp: number, timeoutMs: number): number {
  return timestamp + (type === 'submit' ? MAX_LIFE_MS : timeoutMs)
}

type Travels = Pick<Header, 'call_type' | 'payload_size'>

/** Whether such an envelope can only be the opening of a stream: a streaming call, or a payload that no envelope holds. */
export function mustOpenStream({ call_type, payload_size }: Travels): boolean {
  return call_type === 'stream' || payload_size > LIMITS.envelope
}

/** Whether it may be: beside these, a payload so large that its header decides whether both fit in an envelope. */
export function mayOpenStream(header: Travels): boolean {
  return mustOpenStream(header) || header.payload_size > LIMITS.envelope - LIMITS.header
}

/**
 * Whether such an envelope takes a place in the sender's sequence: `request`, `submit` and `event` to one agent, where they
 * do not open a stream.
 */
export function isSequenced(type: MessageType, recipient: Recipient): boolean {
  return (type === 'request' || type === 'submit' || type === 'event') && !('topic' in recipient)
}

/** Types that answer an envelope and name it by `in_reply_to`. */
export function isAnswer(type: MessageType): boolean {
  return type === 'response' || type === 'ack' || type === 'error' || type === 'end'
}
