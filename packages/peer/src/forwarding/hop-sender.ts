import {
  encodeProven,
  encodeSingle,
  type Header,
  HermesError,
  hopLink,
  type SignedHop,
  type SigningKey,
  signHop,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { WorkRecord } from '../delivery/dedup.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Link } from '../link/link.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Ways } from './ways.ts'

export interface HopSenderOptions {
  readonly agentId: string
  readonly key: SigningKey
  readonly clock: Clock
  readonly outbox: Outbox
  readonly telemetry: Telemetry
  readonly tunables: Tunables
  readonly ways: Ways
}

/** Sends on what has come, with one more hop. */
export interface HopSender {
  /**
   * Signs the hop, notes the way back of a request, and writes the frame. `record`: the work that it is, if it is any. Throws
   * `TIMEOUT` without time left, and `BUSY`, both before anything is written.
   */
  send(incoming: Incoming, link: Link, record: WorkRecord | undefined, budgetMs: number): void
}

export function createHopSender(options: HopSenderOptions): HopSender {
  const { agentId: self, key, clock, outbox, telemetry, tunables, ways } = options
  return {
    send(incoming, link, record, budgetMs) {
      const { header, frame, leaf } = incoming
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
        key,
      )
      // A cancel and an event have no answer to pass back.
      if (header.message_type === 'request') {
        const back = { agentId: incoming.link.remote.agentId, epoch: incoming.link.remote.epoch }
        ways.add({ leaf, header, back, next, record, told: false }, budget + tunables.wayGraceMs)
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
