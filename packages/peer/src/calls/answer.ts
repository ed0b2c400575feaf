import {
  decodePayload,
  fromWireError,
  HermesError,
  type JsonValue,
  type ResponsePayload,
  readResponsePayload,
} from '@hermes-peer/protocol'
import type { Incoming } from '../delivery/inbox.ts'
import type { Ending } from './call.ts'

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

/**
 * How an answer ends the attempt it names, and by whom: along the hops that may be another than was asked. A forwarder that has lost
 * the next agent says so; whether the work was started there is then as open as when the own link is lost.
 */
export function endingOf(incoming: Pick<Incoming, 'header' | 'payload' | 'from'>): Ending {
  const by = incoming.from
  try {
    const reply = readReply(incoming)
    if (reply.kind === 'response') return { kind: 'answer', response: reply.response, by }
    return { kind: reply.error.code === 'PEER_UNREACHABLE' ? 'lost' : 'refused', error: reply.error, by }
  } catch (error) {
    return { kind: 'refused', error: HermesError.from(error), by }
  }
}
