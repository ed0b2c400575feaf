import {
  encodeProven,
  encodeSingle,
  type Header,
  HermesError,
  hopLink,
  MAX_LIFE_MS,
  type SignedHop,
  signHop,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { WorkRecord } from '../delivery/dedup.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Link } from '../link/link.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Heard, Ways } from './ways.ts'

export interface HopSenderOptions {
  readonly agentId: string
  readonly clock: Clock
  readonly outbox: Outbox
  readonly telemetry: Telemetry
  readonly tunables: Tunables
  readonly ways: Ways
}

/** What is handed on: as it came, whether it has just come or was kept. */
export type HandedMessage = Pick<Incoming, 'header' | 'frame' | 'leaf'>

export interface HopDetails {
  /** What is left for the next agent, ms. */
  readonly budgetMs: number
  /** The link that it came over, to which its answer goes back; not needed where that is `taken` here. */
  readonly back?: Link
  /** The work that it is, if it is any. */
  readonly record?: WorkRecord | undefined
  /** As in `Way`. */
  readonly taken?: (heard: Heard) => void
  readonly taskId?: string | undefined
}

/** Sends on what has come, with one more hop. */
export interface HopSender {
  /**
   * Signs the hop, notes the way back of what is answered, and writes the frame. Throws `TIMEOUT` without time left, and `BUSY`,
   * both before anything is written.
   */
  send(message: HandedMessage, link: Link, details: HopDetails): void
}

export function createHopSender(options: HopSenderOptions): HopSender {
  const { agentId: self, clock, outbox, telemetry, tunables, ways } = options
  return {
    send({ header, frame, leaf }, link, { budgetMs, back, record, taken, taskId }) {
      const budget = Math.floor(budgetMs)
      if (budget < 1) throw new HermesError('TIMEOUT', { message: 'no time is left to hand it on' })
      const next = { agentId: link.remote.agentId, epoch: link.remote.epoch }
      const { hops } = frame
      const before = hops.at(-1)
      const hop = signHop(
        {
          forwarder: self,
          next: next.agentId,
          index: hops.length,
          timestamp: clock.now(),
          budget_ms: budget,
          previous: before ? hopLink(before) : leaf,
        },
        link.own.key,
      )
      // A cancel and an event have no answer to pass back; the ack of a task is waited for here.
      const from = taken
        ? { agentId: self, epoch: 0 }
        : back && { agentId: back.remote.agentId, epoch: back.remote.epoch }
      if (from && (taken || header.message_type === 'request')) {
        const way = { leaf, header, back: from, next, record, taken, taskId, told: false }
        ways.add(way, Math.min(budget, MAX_LIFE_MS) + tunables.wayGraceMs)
      }
      outbox.pass(link, withHops(frame, [...hops, hop]), header, leaf)
      if (telemetry.wants('forward.sent')) {
        telemetry.emit('forward.sent', {
          ...idsOf(header),
          messageType: header.message_type,
          from: header.sender.agent_id,
          to: next.agentId,
          hops: hops.length + 1,
          budgetMs: budget,
        })
      }
    },
  }
}

export function withHops(frame: Incoming['frame'], hops: readonly SignedHop[]): Uint8Array {
  return frame.tag === 0 ? encodeSingle({ ...frame, hops }) : encodeProven({ ...frame, hops })
}

export function sizeOf({ header, payload }: Incoming['frame']): number {
  return header.length + payload.length
}

export function idsOf(header: Header) {
  return { messageId: header.message_id, correlationId: header.correlation_id, traceId: header.trace_id }
}
