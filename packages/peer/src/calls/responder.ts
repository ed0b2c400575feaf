import {
  type AckPayload,
  encodePayload,
  type Header,
  HermesError,
  type MessageType,
  newSpanId,
  sha256Hex,
} from '@hermes-peer/protocol'
import type { Dedup, Outcome, WorkRecord } from '../delivery/dedup.ts'
import type { Draft, Outbox } from '../delivery/outbox.ts'
import type { Links } from '../link/links.ts'
import type { Random } from '../random.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Large } from './large.ts'
import { errorOutcome, rememberedOf } from './outcomes.ts'

export interface ResponderOptions {
  readonly links: Links
  readonly outbox: Outbox
  readonly dedup: Dedup
  readonly random: Random
  readonly telemetry: Telemetry
  readonly maxEnvelopeBytes: number
  /** Sends answers that no envelope holds. */
  large(): Large
}

/** An attempt that is answered, and the neighbour that its answer goes back to when it came over hops. */
export interface Answerable {
  readonly leaf: string
  readonly neighbour: string | undefined
}

/** Sends answers over whatever link to the caller there is. */
export interface Responder {
  /**
   * Answers one attempt over a link of the neighbour it came from. Without a link nothing is sent: an outcome stays remembered, and
   * the caller asks for it when it is back.
   */
  answer(neighbour: string, leaf: string, to: Header, outcome: Outcome, arrived?: () => void): void
  /** Asks the neighbour to tell at once what has arrived, so that `arrived` need not wait for its next heartbeat. */
  askReceipt(neighbour: string): void
  /** Tells that what was sent is stored. */
  acknowledge(neighbour: string, leaf: string, to: Header, ack: AckPayload): void
  /** Answers every attempt given with an outcome, default what is remembered; it is settled once one of them is known to have arrived. */
  send(from: string, record: WorkRecord, attempts: readonly Answerable[], to: Header, outcome?: Outcome): void
  /** Largest envelope that an agent takes, bytes. */
  limit(agentId: string): number
}

export function createResponder(options: ResponderOptions): Responder {
  const { links, outbox, dedup, random, telemetry, maxEnvelopeBytes, large } = options
  const answer = (
    neighbour: string,
    leaf: string,
    to: Header,
    outcome: Omit<Outcome, 'messageType'> & { messageType: MessageType },
    arrived?: () => void,
  ): void => {
    const link = links.get(neighbour)
    if (!link) return
    try {
      const draft: Draft = {
        type: outcome.messageType,
        payload: outcome.payload,
        messageId: to.message_id,
        correlationId: to.correlation_id,
        traceId: to.trace_id,
        spanId: newSpanId((length) => random.bytes(length)),
        contentType: outcome.contentType,
        timeoutMs: ANSWER_LIFE_MS,
        priority: to.priority,
        inReplyTo: leaf,
        to: to.sender.agent_id,
      }
      if (!large().needed(link, draft)) {
        outbox.answer(link, draft, arrived)
        return
      }
      large().answer(neighbour, () => links.get(neighbour), draft, {
        arrived: () => arrived?.(),
        // Whoever waits must not wait for nothing. The work was done, so that it is not to be begun elsewhere.
        failed(cause) {
          const details = { payload_sha256: sha256Hex(outcome.payload) }
          const message = `the result was made, and cannot be sent: ${cause.message}`
          answer(
            neighbour,
            leaf,
            to,
            errorOutcome(new HermesError('RESULT_GONE', { message, details, cause }), outcome.contentType),
            arrived,
          )
        },
      })
    } catch (error) {
      telemetry.emit('listener.failed', { where: 'answer', cause: error })
    }
  }
  return {
    answer,
    askReceipt(neighbour) {
      const link = links.get(neighbour)
      if (link) outbox.heartbeat(link, true)
    },
    acknowledge(from, leaf, to, ack) {
      const contentType = to.content_type
      answer(from, leaf, to, { messageType: 'ack', contentType, payload: encodePayload(contentType, ack) })
    },
    send(from, record, attempts, to, outcome = rememberedOf(record)) {
      if (!outcome) return
      for (const { leaf, neighbour } of attempts) {
        // That it reached the forwarder does not say that it reached the originator: that it was done is remembered until it expires.
        if (neighbour) answer(neighbour, leaf, to, outcome, () => dedup.passed(from, record))
        else answer(from, leaf, to, outcome, () => dedup.settle(from, record))
      }
    },
    limit: (agentId) =>
      Math.min(maxEnvelopeBytes, links.get(agentId)?.remote.limits.max_envelope_bytes ?? maxEnvelopeBytes),
  }
}

/** An answer that is on its way for longer than this has nobody waiting. */
const ANSWER_LIFE_MS = 60_000
