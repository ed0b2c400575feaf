import {
  bindPayload,
  type CallType,
  type ContentType,
  encodeHeader,
  encodePayload,
  type Header,
  type HeaderDraft,
  HermesError,
  isSequenced,
  LIMITS,
  type MessageType,
  newMessageId,
  newSpanId,
  newTraceId,
  type Priority,
  type SealedEnvelope,
  type SigningKey,
  sealEnvelope,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Link, Receipt } from '../link/link.ts'
import type { Links } from '../link/links.ts'
import type { Random } from '../random.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { createWaitingRoom, type Waiting, type WaitingRoom } from './waiting-room.ts'

/** An envelope before it is signed: that happens when it is written, so that what was cancelled before leaves no gap. */
export interface Draft {
  readonly type: MessageType
  readonly payload: Uint8Array
  readonly messageId: string
  readonly correlationId?: string | undefined
  readonly traceId: string
  readonly spanId: string
  readonly capability?: string | undefined
  readonly callType?: CallType | undefined
  readonly contentType?: ContentType | undefined
  readonly timeoutMs: number
  readonly priority?: Priority | undefined
  readonly attempt?: number | undefined
  readonly path?: readonly string[] | undefined
  readonly ordered?: boolean | undefined
  readonly inReplyTo?: string | undefined
  /** Default: `timeoutMs` from when it is written. Wall clock, ms. */
  readonly expiresAt?: number | undefined
  /** Of an event to one agent: whether it is to be acknowledged once it is stored. */
  readonly ack?: 'stored' | undefined
  /** Whom it is for, when that is not the agent at the other end of the link: an answer that goes back along hops. */
  readonly to?: string | undefined
  /** How often it may be handed on, 0..7. Default 4. */
  readonly maxHops?: number | undefined
  readonly sessionId?: string | undefined
  /** SHA-256 of the delegation in the payload's context, hex. */
  readonly delegation?: string | undefined
}

export interface Posted {
  /** Names the attempt. */
  readonly leaf: string
  /** Length of the frame, bytes. */
  readonly bytes: number
}

/** Sequences, signs and writes envelopes. */
export interface Outbox {
  /** Writes now. Throws `PAYLOAD_TOO_LARGE` over the limit of either side, `PEER_UNREACHABLE` when the link is closed. */
  write(link: Link, draft: Draft): Posted
  /**
   * Writes as soon as the link takes more, most urgent first. Calls `written`, or `failed` when the link is lost or too much
   * waits; the returned function takes it back while it still waits.
   */
  post(link: Link, draft: Draft, ends: { written(posted: Posted): void; failed(error: HermesError): void }): () => void
  /**
   * Writes an answer as soon as the link takes it, or, when that link ends before the other side has told that it arrived, over
   * another link of the same life of that agent. Without one it is dropped. `arrived` is called once that has been told.
   */
  answer(link: Link, draft: Draft, arrived?: () => void): void
  /** Writes a frame of another agent's, which this one hands on: a question now, an answer as `answer` does. */
  pass(link: Link, frame: Uint8Array, header: Header, leaf: string, arrived?: () => void): void
  /** Whether header and payload of it are more than an envelope holds, so that its payload travels in chunks. */
  isLarge(link: Link, draft: Draft): boolean
  /**
   * Seals what travels on a stream, without a sequence: an `end`, or the envelope that opens it. A payload that no envelope
   * holds is bound and left out.
   */
  seal(link: Link, draft: Draft): Posted & { readonly frame: Uint8Array; readonly apart: boolean }
  /** A frame for a gossip topic. */
  broadcast(topic: string, data: unknown, timeoutMs: number): { frame: Uint8Array; messageId: string }
  heartbeat(link: Link, reply: boolean): void
  nextSequence(agentId: string): number
  unblocked(link: Link): void
  /** Another link of that agent has taken over: what still waits for this one goes there. */
  retired(link: Link): void
  lost(link: Link, error: HermesError): void
  /** Hands answers that still wait to their links, blocked or not, before these are closed. */
  flush(): void
}

/** Whole-envelope faults of a simulation act here: between outbox and link, so that links count what they really carried. */
export type SendFilter = (to: string, frame: Uint8Array, deliver: (frame: Uint8Array) => void) => void

export interface OutboxOptions {
  readonly agentId: string
  readonly network: string
  readonly epoch: number
  /** Signs what goes over no link. */
  readonly key: () => SigningKey
  readonly links: Links
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly maxEnvelopeBytes: number
  readonly sendFilter?: SendFilter | undefined
  /** A link has ended, and whether what went over it under that leaf arrived, nobody knows. */
  unconfirmed?(link: Link, leaf: string, reason: HermesError): void
}

const ANSWERS: ReadonlySet<MessageType> = new Set(['response', 'ack', 'error', 'end'])

const NOTHING = new Uint8Array(0)
/** As long as any. */
const NO_HASH = '0'.repeat(64)

export function createOutbox(options: OutboxOptions): Outbox {
  return new EnvelopeOutbox(options)
}

class EnvelopeOutbox implements Outbox {
  readonly #options: OutboxOptions
  /** Last sequence used, per agent ever written to: bounded by who is admitted, kept for life, as it may never fall back. */
  readonly #sequences = new Map<string, number>()
  readonly #waiting: WaitingRoom

  constructor(options: OutboxOptions) {
    this.#options = options
    this.#waiting = createWaitingRoom(options)
  }

  nextSequence(agentId: string): number {
    return (this.#sequences.get(agentId) ?? 0) + 1
  }

  write(link: Link, draft: Draft): Posted {
    return this.#write(link, draft, undefined)
  }

  /** Without `receipt`: that of a question. */
  #write(link: Link, draft: Draft, receipt: Receipt | undefined): Posted {
    const { telemetry } = this.#options
    const to = link.remote.agentId
    // Before a sequence is spent: one that never arrives would hold up what comes after it.
    if (link.state === 'closed') throw closed(link)
    const recipient = { agent_id: draft.to ?? to }
    const sequence = isSequenced(draft.type, recipient) ? this.nextSequence(to) : 0
    const sealed = this.#seal({ ...this.#header(draft, link), recipient, sequence }, draft.payload, link)
    if (sequence > 0) this.#sequences.set(to, sequence)
    if (telemetry.wants('envelope.sent')) {
      telemetry.emit('envelope.sent', {
        messageType: draft.type,
        to,
        leaf: sealed.leaf,
        sequence,
        bytes: sealed.frame.length,
        messageId: draft.messageId,
        correlationId: draft.correlationId,
        traceId: draft.traceId,
      })
    }
    this.#send(link, sealed.frame, receipt ?? this.#questionOf(link, draft, sealed.leaf))
    return { leaf: sealed.leaf, bytes: sealed.frame.length }
  }

  pass(link: Link, frame: Uint8Array, header: Header, leaf: string, arrived?: () => void): void {
    if (!ANSWERS.has(header.message_type)) {
      this.#pass(
        link,
        frame,
        header,
        leaf,
        this.#questionOf(link, { type: header.message_type, ack: header.ack }, leaf),
      )
      return
    }
    this.#answer(link, header.priority, frame.length, arrived, (over, receipt) =>
      this.#pass(over, frame, header, leaf, receipt),
    )
  }

  answer(link: Link, draft: Draft, arrived?: () => void): void {
    this.#answer(link, draft.priority ?? 3, draft.payload.length, arrived, (over, receipt) => {
      try {
        this.#write(over, draft, receipt)
      } catch (cause) {
        this.#options.telemetry.emit('listener.failed', { where: 'answer', cause })
      }
    })
  }

  /** `keeps`: bytes that are kept until it is known to have arrived. */
  #answer(
    link: Link,
    priority: number,
    keeps: number,
    arrived: (() => void) | undefined,
    write: (link: Link, receipt: Receipt) => void,
  ): void {
    const entry: Waiting = {
      priority,
      answer: true,
      bytes: keeps,
      write: (over) => write(over, { arrived, keeps, lost: () => this.#waiting.elsewhere(over, entry) }),
      failed: () => undefined,
    }
    this.#waiting.add(link, entry)
  }

  /** Whoever waits for an answer must learn that it waits in vain. */
  #questionOf(
    link: Link,
    { type, ack }: { type: MessageType; ack?: string | undefined },
    leaf: string,
  ): Receipt | undefined {
    if (type !== 'request' && type !== 'submit' && (type !== 'event' || ack !== 'stored')) return undefined
    return { lost: (reason) => this.#options.unconfirmed?.(link, leaf, reason) }
  }

  #pass(link: Link, frame: Uint8Array, header: Header, leaf: string, receipt: Receipt | undefined): void {
    const { telemetry } = this.#options
    if (telemetry.wants('envelope.sent')) {
      telemetry.emit('envelope.sent', {
        messageType: header.message_type,
        to: link.remote.agentId,
        leaf,
        sequence: header.sequence,
        bytes: frame.length,
        maker: header.sender.agent_id,
        messageId: header.message_id,
        correlationId: header.correlation_id,
        traceId: header.trace_id,
      })
    }
    this.#send(link, frame, receipt)
  }

  isLarge(link: Link, draft: Draft): boolean {
    const { length } = draft.payload
    if (length <= LIMITS.envelope - LIMITS.header) return false
    if (length > LIMITS.envelope) return true
    const recipient = { agent_id: link.remote.agentId }
    const sequence = isSequenced(draft.type, recipient) ? this.nextSequence(link.remote.agentId) : 0
    const bound = { payload_sha256: NO_HASH, payload_size: length }
    return (
      encodeHeader({ ...this.#header(draft, link), recipient, sequence, ...bound }).length + length > LIMITS.envelope
    )
  }

  seal(link: Link, draft: Draft): Posted & { readonly frame: Uint8Array; readonly apart: boolean } {
    const { telemetry } = this.#options
    const header = { ...this.#header(draft, link), recipient: { agent_id: link.remote.agentId } }
    const apart = this.isLarge(link, draft)
    const { frame, leaf } = apart
      ? sealEnvelope({ ...header, ...bindPayload(draft.payload) }, NOTHING, this.#key(link))
      : this.#seal(header, draft.payload, link)
    if (telemetry.wants('envelope.sent')) {
      telemetry.emit('envelope.sent', {
        messageType: draft.type,
        to: link.remote.agentId,
        leaf,
        sequence: 0,
        bytes: frame.length,
        messageId: draft.messageId,
        correlationId: draft.correlationId,
        traceId: draft.traceId,
      })
    }
    return { frame, leaf, bytes: frame.length, apart }
  }

  post(
    link: Link,
    draft: Draft,
    ends: { written(posted: Posted): void; failed(error: HermesError): void },
  ): () => void {
    return this.#waiting.add(link, {
      priority: draft.priority ?? 3,
      answer: false,
      bytes: draft.payload.length,
      write: (over) => {
        let posted: Posted
        try {
          posted = this.write(over, draft)
        } catch (error) {
          ends.failed(HermesError.from(error))
          return
        }
        ends.written(posted)
      },
      failed: ends.failed,
    })
  }

  broadcast(topic: string, data: unknown, timeoutMs: number): { frame: Uint8Array; messageId: string } {
    const { random, telemetry } = this.#options
    const bytes = (length: number) => random.bytes(length)
    const messageId = newMessageId(bytes)
    const draft: Draft = {
      type: 'event',
      payload: encodePayload('application/json', { data }),
      messageId,
      traceId: newTraceId(bytes),
      spanId: newSpanId(bytes),
      timeoutMs,
    }
    const sealed = this.#seal({ ...this.#header(draft), recipient: { topic } }, draft.payload)
    if (telemetry.wants('envelope.sent')) {
      telemetry.emit('envelope.sent', {
        messageType: 'event',
        to: `topic:${topic}`,
        leaf: sealed.leaf,
        sequence: 0,
        bytes: sealed.frame.length,
        messageId,
        traceId: draft.traceId,
      })
    }
    return { frame: sealed.frame, messageId }
  }

  heartbeat(link: Link, reply: boolean): void {
    if (link.state === 'closed') return
    const { clock, random } = this.#options
    const bytes = (length: number) => random.bytes(length)
    this.write(link, {
      type: 'heartbeat',
      payload: encodePayload('application/json', { time: clock.now(), reply, received: link.framesReceived }),
      messageId: newMessageId(bytes),
      traceId: newTraceId(bytes),
      spanId: newSpanId(bytes),
      timeoutMs: 60_000,
      priority: 5,
    })
  }

  unblocked(link: Link): void {
    this.#waiting.unblocked(link)
  }

  retired(link: Link): void {
    this.#waiting.retired(link)
  }

  lost(link: Link, error: HermesError): void {
    this.#waiting.lost(link, error)
  }

  flush(): void {
    this.#waiting.flush()
  }

  #send(link: Link, frame: Uint8Array, receipt: Receipt | undefined): void {
    const { sendFilter, links } = this.#options
    const to = link.remote.agentId
    if (sendFilter)
      sendFilter(to, frame, (filtered) =>
        (link.state === 'closed' ? (links.get(to) ?? link) : link).send(filtered, receipt),
      )
    else link.send(frame, receipt)
  }

  /** The other end of a link knows us by the key of its handshake. */
  #key(link: Link | undefined): SigningKey {
    return link ? link.own.key : this.#options.key()
  }

  #header(draft: Draft, link?: Link): Omit<HeaderDraft, 'recipient' | 'sequence' | 'payload_sha256' | 'payload_size'> {
    const { agentId, network, epoch, clock } = this.#options
    const timestamp = clock.now()
    const timeoutMs = Math.max(1, Math.ceil(draft.timeoutMs))
    return {
      network,
      message_id: draft.messageId,
      correlation_id: draft.correlationId,
      session_id: draft.sessionId,
      delegation: draft.delegation,
      trace_id: draft.traceId,
      span_id: draft.spanId,
      message_type: draft.type,
      sender: { agent_id: agentId, key: this.#key(link).publicKey.fingerprint },
      target_capability: draft.capability,
      call_type: draft.callType,
      epoch,
      // What is stored over there is meant for any life of the other side.
      recipient_epoch:
        draft.type === 'request' || (draft.type === 'event' && link && draft.ack === undefined)
          ? link?.remote.epoch
          : undefined,
      ordered: draft.ordered,
      timestamp,
      expires_at: draft.expiresAt ?? timestamp + timeoutMs,
      timeout_ms: timeoutMs,
      priority: draft.priority,
      attempt: draft.attempt,
      path: draft.path,
      ack: draft.ack,
      max_hops: draft.maxHops,
      content_type: draft.contentType,
      in_reply_to: draft.inReplyTo,
    }
  }

  #seal(
    header: Omit<HeaderDraft, 'payload_sha256' | 'payload_size'>,
    payload: Uint8Array,
    link?: Link,
  ): SealedEnvelope {
    const limit = Math.min(
      this.#options.maxEnvelopeBytes,
      link?.remote.limits.max_envelope_bytes ?? Number.POSITIVE_INFINITY,
    )
    // Judged before the work of hashing and signing; with its header it is judged again.
    if (payload.length > limit) {
      throw new HermesError('PAYLOAD_TOO_LARGE', {
        message: `the payload alone has ${payload.length} bytes, the limit is ${limit}`,
        details: { size: payload.length, limit },
      })
    }
    return sealEnvelope({ ...header, ...bindPayload(payload) }, payload, this.#key(link), limit)
  }
}

function closed({ remote }: Link): HermesError {
  return new HermesError('PEER_UNREACHABLE', { message: `the link to ${remote.agentId} is closed` })
}
