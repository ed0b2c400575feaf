import {
  checkOpening,
  decodeFrame,
  decodeHeader,
  type Header,
  HermesError,
  type MessageType,
  type ProvenFrame,
  type RootMemory,
  type SingleFrame,
  verifyEnvelope,
  verifyPayload,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Link } from '../link/link.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Dedup, WorkRecord } from './dedup.ts'
import { acceptForeign, type Foreign, type ForeignSink, isForeign } from './foreign.ts'
import { judgeTime } from './judge-time.ts'
import { createRootMemory } from './root-memory.ts'
import { createWindow, type SequenceWindow } from './window.ts'

/** An envelope that has been verified; its payload has not been parsed yet. */
export interface Incoming {
  readonly header: Header
  readonly leaf: string
  readonly payload: Uint8Array
  /** The authenticated sender. */
  readonly from: string
  /** The link that it came over; without hops that of its sender. */
  readonly link: Link
  /** As it came: what is handed on is never made anew. */
  readonly frame: SingleFrame | ProvenFrame
  /** The agents that handed it on, in that order. */
  readonly via: readonly string[]
  /** What is left for the work from its arrival, ms. */
  readonly budgetMs: number
  /** Monotonic ms. */
  readonly receivedAt: number
  /** When it expires on our wall clock, tolerance included. */
  readonly expiresAt: number
}

/** What opens a stream, verified but for a payload that is yet to come. */
export interface Opening {
  readonly incoming: Incoming
  /** The payload follows in chunks. */
  readonly apart: boolean
  /** Authentic, and not accepted: whoever opened it is told. */
  readonly refusal: HermesError | undefined
}

export interface InboxEvents {
  /** In the order of the sender, at most once per message id: everything else about it is still to be judged. */
  admitted(incoming: Incoming): void
  /** The same piece of work again, or another one under its id. */
  duplicate(incoming: Incoming, record: WorkRecord): void
  /** Whether that submit has become a task before; it is answered then. */
  resubmitted(incoming: Incoming): boolean
  answer(incoming: Incoming): void
  cancel(incoming: Incoming): void
  heartbeat(incoming: Incoming): void
  /** Tells the authenticated sender of a request that it was not accepted. */
  refused(incoming: Pick<Incoming, 'header' | 'leaf' | 'link' | 'from'>, error: HermesError): void
}

/** Verifies what comes, in the order of the wire contract: nothing changes before the signature holds. */
export interface Inbox {
  receive(link: Link, body: Uint8Array): void
  /** Verifies what opens a stream; throws when it is not authentic, which counts against the link. */
  receiveOpening(link: Link, body: Uint8Array): Opening
  /** Verifies the last word on a stream; throws the refusal. */
  receiveEnd(link: Link, body: Uint8Array): Incoming
  /** A link is up: its sender's window begins, or goes on. `only`: no other link of that agent is left to deliver. */
  linked(link: Link, only: boolean): void
  seenEpoch(agentId: string): number
  close(): void
}

export interface InboxOptions {
  readonly agentId: string
  readonly network: string
  readonly epoch: number
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly dedup: Dedup
  readonly events: InboxEvents
  /** Verifies what has come over hops. */
  readonly foreign: Foreign
}

interface Sender {
  epoch: number
  window: SequenceWindow<Incoming>
}

/** What a refused envelope is worth telling its sender: only work waits for an answer. */
const ANSWERED: ReadonlySet<MessageType> = new Set(['request', 'submit'])

export function createInbox(options: InboxOptions): Inbox {
  return new EnvelopeInbox(options)
}

class EnvelopeInbox implements Inbox {
  readonly #options: InboxOptions
  /** One window per agent ever linked: bounded by who is admitted; kept, as forgetting one would let old sequences in again. */
  readonly #senders = new Map<string, Sender>()
  readonly #roots: RootMemory = createRootMemory()

  constructor(options: InboxOptions) {
    this.#options = options
  }

  seenEpoch(agentId: string): number {
    return this.#senders.get(agentId)?.epoch ?? 0
  }

  linked(link: Link, only: boolean): void {
    const { agentId, epoch, nextSequence } = link.remote
    const sender = this.#senders.get(agentId)
    if (sender?.epoch === epoch) {
      // What was written to the links before and has not come is lost with them.
      if (only) sender.window.advance(nextSequence)
      return
    }
    sender?.window.close()
    this.#senders.set(agentId, { epoch, window: this.#window(agentId, nextSequence) })
  }

  close(): void {
    for (const { window } of this.#senders.values()) window.close()
  }

  receive(link: Link, body: Uint8Array): void {
    const receivedAt = this.#options.clock.monotonic()
    let header: Header | undefined
    let verified: { leaf: string } | undefined
    try {
      const frame = decodeFrame(body)
      if (frame.tag === 2) throw new HermesError('BATCH_UNSUPPORTED')
      header = decodeHeader(frame.header)
      const arrived = { link, frame, header, receivedAt }
      if (isForeign(arrived, this.#options.agentId)) {
        this.#options.foreign.receive(arrived, this.#foreignSink)
        return
      }
      verified = { leaf: this.#verify(link, frame, header) }
      this.#accept(this.#incoming(link, frame, header, verified.leaf, receivedAt))
    } catch (error) {
      this.#refuse(link, header, verified?.leaf, HermesError.from(error))
    }
  }

  receiveOpening(link: Link, body: Uint8Array): Opening {
    let header: Header | undefined
    try {
      const frame = decodeFrame(body)
      if (frame.tag === 2) throw new HermesError('BATCH_UNSUPPORTED')
      header = decodeHeader(frame.header)
      const leaf = this.#signed(link, frame, header)
      const apart = checkOpening(header, frame) === 'apart'
      const incoming = this.#incoming(link, frame, header, leaf)
      let refusal: HermesError | undefined
      try {
        this.#judge(incoming)
      } catch (error) {
        refusal = HermesError.from(error)
        this.#told(link, header, refusal)
      }
      return { incoming, apart, refusal }
    } catch (error) {
      this.#refuse(link, header, undefined, HermesError.from(error))
      throw error
    }
  }

  receiveEnd(link: Link, body: Uint8Array): Incoming {
    const frame = decodeFrame(body)
    if (frame.tag === 2) throw new HermesError('BATCH_UNSUPPORTED')
    const header = decodeHeader(frame.header)
    const incoming = this.#incoming(link, frame, header, this.#verify(link, frame, header))
    this.#judge(incoming)
    return incoming
  }

  #incoming(
    link: Link,
    frame: SingleFrame | ProvenFrame,
    header: Header,
    leaf: string,
    receivedAt = this.#options.clock.monotonic(),
  ): Incoming {
    const { tunables } = this.#options
    return {
      header,
      leaf,
      payload: frame.payload,
      from: link.remote.agentId,
      link,
      frame,
      via: [],
      budgetMs: header.timeout_ms,
      receivedAt,
      expiresAt: header.expires_at - link.offsetMs + tunables.clockToleranceMs,
    }
  }

  /** Who sent it, and that every byte is as it was signed. Returns the leaf. */
  #verify(link: Link, frame: SingleFrame | ProvenFrame, header: Header): string {
    const leaf = this.#signed(link, frame, header)
    verifyPayload(header, frame)
    return leaf
  }

  #signed(link: Link, frame: SingleFrame | ProvenFrame, header: Header): string {
    const { agentId, key } = link.remote
    // What came over hops was taken apart before; on a stream nothing is handed on.
    if (frame.hops.length > 0) throw new HermesError('FORWARDING_UNSUPPORTED')
    if (header.sender.agent_id !== agentId || header.sender.key !== key.fingerprint) {
      throw new HermesError('WRONG_SENDER', {
        message: `${agentId} sent an envelope in the name of ${header.sender.agent_id}`,
      })
    }
    return verifyEnvelope(frame, key, this.#roots)
  }

  readonly #foreignSink: ForeignSink = {
    accept: (incoming) => acceptForeign(incoming, this.#options, this.seenEpoch(incoming.from)),
    refuse: ({ link, header }, leaf, error) => this.#refuse(link, header, leaf, error),
  }

  /** Whether it is meant for this peer, in this life, and now. */
  #judge(incoming: Incoming): Sender {
    const { header, from, link } = incoming
    const { network, agentId, epoch, telemetry, tunables } = this.#options
    if (header.network !== network) throw new HermesError('WRONG_NETWORK')
    const { recipient } = header
    if ('topic' in recipient) throw new HermesError('WRONG_RECIPIENT', { message: 'a broadcast came over a link' })
    const addressee = 'agent_id' in recipient ? recipient.agent_id : recipient.via
    if (addressee !== agentId) {
      throw new HermesError('WRONG_RECIPIENT', { message: `meant for ${addressee}, this is ${agentId}` })
    }
    const sender = this.#senders.get(from)
    if (!sender || header.epoch !== sender.epoch || header.epoch !== link.remote.epoch) {
      throw new HermesError('STALE_EPOCH', {
        message: `life ${header.epoch} of ${from}, life ${sender?.epoch} is known`,
      })
    }
    // From here on the envelope is authentic and ours: a refusal uses up its place, so that nothing waits for it.
    if (header.recipient_epoch !== 0 && header.recipient_epoch !== epoch) {
      if (header.sequence > 0) sender.window.skip(header.sequence)
      throw new HermesError('PEER_RESTARTED')
    }
    try {
      // A heartbeat brings the clock that all others are judged by: judged by the old one, a step of a clock would never heal.
      if (header.message_type !== 'heartbeat') {
        const now = this.#options.clock.now()
        judgeTime(header, { now, offsetMs: link.offsetMs, toleranceMs: tunables.clockToleranceMs })
      }
    } catch (error) {
      if (header.sequence > 0) sender.window.skip(header.sequence)
      throw error
    }
    if (telemetry.wants('envelope.received')) {
      telemetry.emit('envelope.received', {
        messageType: header.message_type,
        from,
        leaf: incoming.leaf,
        sequence: header.sequence,
        bytes: header.payload_size,
        messageId: header.message_id,
        correlationId: header.correlation_id,
        traceId: header.trace_id,
      })
    }
    return sender
  }

  #accept(incoming: Incoming): void {
    const sender = this.#judge(incoming)
    const { header } = incoming
    const { events } = this.#options
    switch (header.message_type) {
      case 'response':
      case 'error':
      case 'ack':
      case 'end':
        events.answer(incoming)
        return
      case 'heartbeat':
        events.heartbeat(incoming)
        return
      case 'cancel':
        events.cancel(incoming)
        return
      default:
        this.#order(incoming, sender)
    }
  }

  /** Duplicate, then window. */
  #order(incoming: Incoming, { window }: Sender): void {
    const { header, from } = incoming
    const { dedup, events, telemetry } = this.#options
    if (header.sequence === 0) throw new HermesError('MALFORMED', { message: 'what opens a stream came over a link' })
    const record = dedup.find(from, header.message_id)
    if (!record && header.message_type === 'submit' && events.resubmitted(incoming)) {
      window.skip(header.sequence)
      return
    }
    if (record) {
      window.skip(header.sequence)
      events.duplicate(incoming, record)
      return
    }
    if (window.offer(header.sequence, header.payload_size, header.ordered, incoming) === 'stale') {
      if (window.heldAt(header.sequence)?.header.message_id === header.message_id) {
        // Its first copy waits behind a gap and will be started: to call this one stale would promise that it never is.
        const ids = { messageId: header.message_id, correlationId: header.correlation_id, traceId: header.trace_id }
        telemetry.emit('dedup.joined', { ...ids, from })
        return
      }
      throw new HermesError('STALE_SEQUENCE', {
        message: `sequence ${header.sequence} came when ${window.next} was awaited`,
      })
    }
  }

  #window(agentId: string, start: number): SequenceWindow<Incoming> {
    const { clock, tunables, telemetry, dedup, events } = this.#options
    return createWindow<Incoming>({
      clock,
      items: tunables.windowItems,
      bytes: tunables.windowBytes,
      gapMs: tunables.gapTimeoutMs,
      start,
      admit: (incoming) => {
        if (telemetry.wants('envelope.admitted')) {
          const { header } = incoming
          telemetry.emit('envelope.admitted', {
            from: agentId,
            epoch: header.epoch,
            sequence: header.sequence,
            ordered: header.ordered,
            attempt: header.attempt,
            messageId: header.message_id,
            correlationId: header.correlation_id,
            traceId: header.trace_id,
          })
        }
        // Another attempt of the same work may have been admitted while this one was held.
        const record = dedup.find(agentId, incoming.header.message_id)
        try {
          if (record) events.duplicate(incoming, record)
          else if (incoming.header.message_type !== 'submit' || !events.resubmitted(incoming)) events.admitted(incoming)
        } catch (error) {
          this.#refuse(incoming.link, incoming.header, incoming.leaf, HermesError.from(error))
        }
      },
      gap: (sequence, count, reason) => telemetry.emit('window.gap', { from: agentId, sequence, count, reason }),
    })
  }

  #told(link: Link, header: Header | undefined, error: HermesError): void {
    this.#options.telemetry.emit('envelope.refused', {
      code: error.code,
      reason: error.message,
      from: link.remote.agentId,
      messageId: header?.message_id,
      messageType: header?.message_type,
    })
  }

  #refuse(link: Link, header: Header | undefined, leaf: string | undefined, error: HermesError): void {
    const { events, tunables } = this.#options
    this.#told(link, header, error)
    if (leaf === undefined) {
      // Not authentic: nobody is answered, and who keeps sending such things is cut.
      link.violations++
      if (link.violations >= tunables.violationsPerLink) {
        link.destroy(
          new HermesError('MALFORMED', {
            message: `${link.remote.agentId} sent ${link.violations} envelopes that do not verify`,
          }),
        )
      }
      return
    }
    if (header && ANSWERED.has(header.message_type)) {
      events.refused({ header, leaf, link, from: link.remote.agentId }, error)
    }
  }
}
