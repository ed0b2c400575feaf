import { bindPayload, MAX_SINGLE_FRAME, Reader, sealEnvelope, sha256, signingKey, utf8 } from '@hermes-peer/protocol'
import { type ManualClock, manualClock } from '@hermes-peer/testkit'
import { DEFAULTS } from '../../src/defaults.ts'
import { createDedup, type Dedup } from '../../src/delivery/dedup.ts'
import { createInbox, type Incoming } from '../../src/delivery/inbox.ts'
import type { Link } from '../../src/link/link.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'

export interface InboxScene {
  readonly clock: ManualClock
  readonly dedup: Dedup
  /** Message ids whose work was started, in that order. */
  readonly started: string[]
  /** A frame of the caller; the same again when it is sent again. */
  frame(messageId: string, sequence: number, expiresAt: number): Uint8Array
  /** Receives a frame and says what became of it: `started`, `duplicate`, or the code of its refusal. */
  receive(frame: Uint8Array): string
}

const PAYLOAD = utf8('{"input":{}}')

/** An inbox with its memory, and a server that ends each piece of work at once and sees its answer arrive. */
export function inboxScene(): InboxScene {
  const clock = manualClock()
  const telemetry = createTelemetry({ clock })
  const key = signingKey(sha256(utf8('caller')))
  const dedup = createDedup({
    now: () => clock.now(),
    idsPerSender: DEFAULTS.dedupIdsPerSender,
    bytesPerSender: DEFAULTS.dedupBytesPerSender,
    idsPerNode: DEFAULTS.dedupIdsPerNode,
  })
  const started: string[] = []
  let verdict = 'nothing'
  telemetry.events.on('envelope.refused', ({ code }) => {
    verdict = code
  })
  const start = ({ header, from, leaf, expiresAt }: Incoming): void => {
    const work = {
      messageType: header.message_type,
      capability: header.target_capability,
      payloadSha256: header.payload_sha256,
    }
    const record = dedup.begin(from, header.message_id, work, expiresAt, leaf)
    if (!record) throw new Error('busy')
    started.push(header.message_id)
    verdict = 'started'
    dedup.finish(from, record, { messageType: 'response', contentType: 'application/json', payload: utf8('{}') })
    dedup.settle(from, record)
  }
  const inbox = createInbox({
    agentId: 'server',
    network: 'dev-team',
    epoch: 1,
    clock,
    tunables: DEFAULTS,
    telemetry,
    dedup,
    foreign: {
      receive: () => {
        throw new Error('nothing here comes over hops')
      },
    },
    events: {
      admitted: start,
      resubmitted: () => false,
      duplicate: () => {
        verdict = 'duplicate'
      },
      answer: () => {},
      cancel: () => {},
      heartbeat: () => {},
      refused: () => {},
    },
  })
  const remote = { agentId: 'caller', epoch: 1, nextSequence: 1, key: key.publicKey }
  const link = { remote, offsetMs: 0, violations: 0, destroy: () => {} } as unknown as Link
  inbox.linked(link, true)
  return {
    clock,
    dedup,
    started,
    frame(messageId, sequence, expiresAt) {
      const { frame } = sealEnvelope(
        {
          network: 'dev-team',
          message_id: messageId,
          trace_id: 'a'.repeat(32),
          span_id: 'b'.repeat(16),
          message_type: 'request',
          sender: { agent_id: 'caller', key: key.publicKey.fingerprint },
          recipient: { agent_id: 'server' },
          target_capability: 'work',
          epoch: 1,
          recipient_epoch: 1,
          sequence,
          timestamp: clock.now(),
          expires_at: expiresAt,
          ...bindPayload(PAYLOAD),
        },
        PAYLOAD,
        key,
      )
      return frame
    },
    receive(frame) {
      verdict = 'nothing'
      inbox.receive(link, new Reader(frame).part(MAX_SINGLE_FRAME, 'the frame'))
      return verdict
    },
  }
}
