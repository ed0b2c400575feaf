import {
  decodePayload,
  fromWireError,
  type HermesError,
  type JsonValue,
  type ResponsePayload,
  readResponsePayload,
} from '@hermes-peer/protocol'
import type { Incoming } from '../delivery/inbox.ts'

/** How an attempt was answered. */
export type Reply =
  | { readonly kind: 'response'; readonly response: ResponsePayload }
  | { readonly kind: 'error'; readonly error: HermesError }

/** Reads the payload of an answer. Throws `INVALID_PAYLOAD`. */
export function readReply(incoming: Pick<Incoming, 'header' | 'payload'>): Reply {
  const { message_type, content_type } = incoming.header
  return replyOf(message_type === 'response' ? 'response' : 'error', decodePayload(content_type, incoming.payload))
}

export function replyOf(type: 'response' | 'error', payload: JsonValue): Reply {
  return type === 'response'
    ? { kind: 'response', response: readResponsePayload(payload) }
    : { kind: 'error', error: fromWireError(payload) }
}
