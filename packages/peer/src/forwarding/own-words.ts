import { encodePayload, type Header, type HermesError, newSpanId, toWireError } from '@hermes-peer/protocol'
import type { Draft, Outbox } from '../delivery/outbox.ts'
import type { Link } from '../link/link.ts'
import type { Random } from '../random.ts'
import type { Telemetry } from '../telemetry/events.ts'

/** What a forwarder says in its own name of what it has handed on. */
export interface OwnWords {
  /** An error, back along the hops to the originator of `header`. */
  tell(back: Link, header: Header, leaf: string, error: HermesError): void
  /** A cancel, to the next agent: valid for what came to it through here. */
  giveUp(next: Link, header: Header, expiresAt: number): void
}

/** What is on its way for longer than this has nobody waiting. */
const LIFE_MS = 60_000

export function createOwnWords(options: { outbox: Outbox; random: Random; telemetry: Telemetry }): OwnWords {
  const { outbox, random, telemetry } = options
  const write = (link: Link, header: Header, draft: Pick<Draft, 'type' | 'payload'> & Partial<Draft>): void => {
    try {
      outbox.write(link, {
        messageId: header.message_id,
        correlationId: header.correlation_id,
        traceId: header.trace_id,
        spanId: newSpanId((length) => random.bytes(length)),
        timeoutMs: LIFE_MS,
        ...draft,
      })
    } catch (cause) {
      telemetry.emit('listener.failed', { where: `forwarding: ${draft.type}`, cause })
    }
  }
  return {
    tell(back, header, leaf, error) {
      write(back, header, {
        type: 'error',
        payload: encodePayload(header.content_type, toWireError(error) as never),
        contentType: header.content_type,
        priority: header.priority,
        inReplyTo: leaf,
        to: header.sender.agent_id,
      })
    },
    giveUp(next, header, expiresAt) {
      const payload = { message_id: header.message_id, expires_at: Math.ceil(expiresAt) }
      write(next, header, { type: 'cancel', payload: encodePayload('application/json', payload), priority: 5 })
    },
  }
}
