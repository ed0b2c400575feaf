import { HermesError, signingKey } from '@hermes-peer/protocol'
import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createOutbox, type Draft } from '../../src/delivery/outbox.ts'
import type { Link } from '../../src/link/link.ts'
import type { Links } from '../../src/link/links.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'

function scene() {
  const clock = manualClock()
  const outbox = createOutbox({
    agentId: 'a',
    network: 'net',
    epoch: 1,
    key: signingKey(new Uint8Array(32).fill(1)),
    links: {} as Links,
    clock,
    random: seededRandom(1),
    tunables: DEFAULTS,
    telemetry: createTelemetry({ clock }),
    maxEnvelopeBytes: 1024 * 1024,
  })
  const sent: Uint8Array[] = []
  const link = {
    state: 'open',
    blocked: false,
    remote: { agentId: 'b', epoch: 1, limits: { max_envelope_bytes: 1024 * 1024, max_in_flight: 1 } },
    send: (frame: Uint8Array) => void sent.push(frame),
  }
  const draft: Draft = {
    type: 'request',
    payload: new TextEncoder().encode('{"input":1}'),
    messageId: 'msg_0123456789abcdef',
    traceId: `${'0'.repeat(31)}1`,
    spanId: `${'0'.repeat(15)}1`,
    capability: 'work',
    timeoutMs: 1000,
  }
  return { outbox, sent, link, to: link as unknown as Link, draft }
}

describe('a closed link', () => {
  it.each([false, true])('takes nothing, and costs no sequence, were it full (%s) or not', (blocked) => {
    const { outbox, sent, link, to, draft } = scene()
    Object.assign(link, { state: 'closed', blocked })
    const failed: HermesError[] = []
    const written = () => expect.unreachable()
    outbox.post(to, draft, { written, failed: (error) => failed.push(error) })
    expect(failed).toMatchObject([{ code: 'PEER_UNREACHABLE', message: 'the link to b is closed' }])
    expect(() => outbox.write(to, draft)).toThrow(expect.objectContaining({ code: 'PEER_UNREACHABLE' }))
    expect(outbox.nextSequence('b')).toBe(1)
    outbox.lost(to, new HermesError('PEER_UNREACHABLE'))
    expect(failed).toHaveLength(1)
    expect(sent).toEqual([])
  })
})
