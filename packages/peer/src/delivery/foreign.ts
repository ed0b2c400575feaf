import { type Header, HermesError, isAnswer, type ProvenFrame, type SingleFrame } from '@hermes-peer/protocol'
import type { Link } from '../link/link.ts'
import type { InboxOptions, Incoming } from './inbox.ts'
import { judgeTime } from './judge-time.ts'

/** An envelope as it came over a link, not verified yet. */
export interface Arrived {
  readonly link: Link
  readonly frame: SingleFrame | ProvenFrame
  readonly header: Header
  /** Monotonic ms. */
  readonly receivedAt: number
}

/** An envelope whose maker is not the agent at the other end of the link; verified. */
export interface ForeignIncoming extends Incoming {
  /** How far the clock of its maker is known to be off, and what is tolerated beside that, ms. */
  readonly offsetMs: number
  readonly toleranceMs: number
}

/** Where what has been verified, or could not be, goes on. */
export interface ForeignSink {
  accept(incoming: ForeignIncoming): void
  /** `leaf` undefined: not authentic, which counts against the link. */
  refuse(arrived: Arrived, leaf: string | undefined, error: HermesError): void
}

/** Verifies what others than the neighbour have made: what has come over hops, and answers that go back along them. */
export interface Foreign {
  receive(arrived: Arrived, sink: ForeignSink): void
}

/** Whether its maker, or the one it is for, is another than the two ends of the link. */
export function isForeign({ link, frame, header }: Arrived, self: string): boolean {
  if (frame.hops.length > 0) return true
  if (!isAnswer(header.message_type)) return false
  const { recipient, sender } = header
  return sender.agent_id !== link.remote.agentId || !('agent_id' in recipient) || recipient.agent_id !== self
}

/** What is judged of such an envelope once it is authentic. There is no window: its sequence counts at the first addressee. */
export function acceptForeign(incoming: ForeignIncoming, options: InboxOptions, seenEpoch: number): void {
  const { header, from, leaf, offsetMs, toleranceMs } = incoming
  const { network, clock, dedup, events, telemetry } = options
  if (header.network !== network) throw new HermesError('WRONG_NETWORK')
  // A task outlives the life of its owner: whoever hands it on may come long after, and it is known by its id until it expires.
  if (header.epoch < seenEpoch && header.message_type !== 'submit') {
    throw new HermesError('STALE_EPOCH', { message: `life ${header.epoch} of ${from}, life ${seenEpoch} is known` })
  }
  judgeTime(header, { now: clock.now(), offsetMs, toleranceMs })
  if (telemetry.wants('envelope.received')) {
    telemetry.emit('envelope.received', {
      messageType: header.message_type,
      from,
      leaf,
      sequence: header.sequence,
      bytes: header.payload_size,
      messageId: header.message_id,
      correlationId: header.correlation_id,
      traceId: header.trace_id,
    })
  }
  if (isAnswer(header.message_type)) {
    events.answer(incoming)
    return
  }
  if (header.message_type === 'cancel') {
    events.cancel(incoming)
    return
  }
  const record = dedup.find(from, header.message_id)
  if (record) events.duplicate(incoming, record)
  else if (header.message_type !== 'submit' || !events.resubmitted(incoming)) events.admitted(incoming)
}
