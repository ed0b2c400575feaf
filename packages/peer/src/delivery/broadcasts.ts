import {
  type ContentType,
  decodeFrame,
  decodeHeader,
  type Header,
  HermesError,
  MAX_SINGLE_FRAME,
  type PublicKey,
  Reader,
  verifyEnvelope,
  verifyPayload,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Dedup } from './dedup.ts'
import { judgeTime } from './judge-time.ts'
import { createRootMemory } from './root-memory.ts'

/** An envelope to all who listen to a topic, verified; its payload has not been parsed yet. */
export interface Broadcast {
  readonly header: Header
  readonly payload: Uint8Array
  readonly from: string
  readonly contentType: ContentType
}

/**
 * Verifies one frame that gossip brought, and remembers it: each is let through once. Throws the refusal. `keyOf` gives the key
 * of an agent if it is the one of that fingerprint.
 */
export type ReceiveBroadcast = (
  topic: string,
  frame: Uint8Array,
  keyOf: (agentId: string, fingerprint: string) => PublicKey | undefined,
) => Broadcast

export interface BroadcastsOptions {
  readonly network: string
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly dedup: Dedup
}

export function createBroadcasts({ network, clock, tunables, telemetry, dedup }: BroadcastsOptions): ReceiveBroadcast {
  const roots = createRootMemory()
  return (topic, bytes, keyOf) => {
    const reader = new Reader(bytes)
    const frame = decodeFrame(reader.part(MAX_SINGLE_FRAME, 'the frame'))
    reader.end('the frame')
    if (frame.tag === 2 || frame.hops.length > 0)
      throw new HermesError('MALFORMED', { message: 'a broadcast is one envelope without hops' })
    const header = decodeHeader(frame.header)
    const from = header.sender.agent_id
    const key = keyOf(from, header.sender.key)
    if (!key) throw new HermesError('NOT_ALLOWED', { message: `the key of ${from} is not known` })
    const leaf = verifyEnvelope(frame, key, roots)
    verifyPayload(header, frame)
    if (header.network !== network) throw new HermesError('WRONG_NETWORK')
    if (!('topic' in header.recipient) || header.recipient.topic !== topic) throw new HermesError('WRONG_RECIPIENT')
    // Without a link nobody has measured the clock of its sender.
    judgeTime(header, { now: clock.now(), offsetMs: 0, toleranceMs: tunables.maxClockOffsetMs })
    const work = { messageType: header.message_type, capability: undefined, payloadSha256: header.payload_sha256 }
    if (dedup.find(from, header.message_id))
      throw new HermesError('MESSAGE_CONFLICT', { message: 'a broadcast that was seen before' })
    const record = dedup.begin(from, header.message_id, work, header.expires_at + tunables.maxClockOffsetMs, '')
    if (!record) throw new HermesError('BUSY')
    record.state = 'done'
    dedup.settle(from, record)
    if (telemetry.wants('envelope.received')) {
      telemetry.emit('envelope.received', {
        messageType: header.message_type,
        from,
        leaf,
        sequence: 0,
        bytes: header.payload_size,
        messageId: header.message_id,
        correlationId: header.correlation_id,
        traceId: header.trace_id,
      })
    }
    return { header, payload: frame.payload, from, contentType: header.content_type }
  }
}
