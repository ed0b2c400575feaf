import { isHermesError, MAX_SINGLE_FRAME, Reader } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createBroadcasts, type ReceiveBroadcast } from '../../src/delivery/broadcasts.ts'
import { createDedup } from '../../src/delivery/dedup.ts'
import { createInbox, type Inbox } from '../../src/delivery/inbox.ts'
import { createArrivals } from '../../src/forwarding/arrivals.ts'
import { createWays } from '../../src/forwarding/ways.ts'
import type { Link } from '../../src/link/link.ts'
import type { Links } from '../../src/link/links.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { publicKeys, type Read, read, unhex } from './support.ts'

const { receiver, accepted, refused, not_offered, broadcasts, refused_broadcasts } = read('arrivals')
const keyOf = publicKeys()

interface Scene {
  inbox: Inbox
  hear: ReceiveBroadcast
  link: Link
  /** What became of each frame: accepted, or the code of its refusal. */
  verdicts: string[]
  /** Codes that the sender was told. */
  told: string[]
}

/** The receiver of the vectors, with the link that frames come over. */
function scene(link: Read = receiver.link): Scene {
  const clock = manualClock({ start: receiver.now })
  const telemetry = createTelemetry({ clock })
  const verdicts: string[] = []
  const told: string[] = []
  telemetry.events.on('envelope.refused', ({ code }) => verdicts.push(code))
  const { dedupIdsPerSender, dedupBytesPerSender, dedupIdsPerNode } = DEFAULTS
  const dedup = createDedup({
    now: () => clock.now(),
    idsPerSender: dedupIdsPerSender,
    bytesPerSender: dedupBytesPerSender,
    idsPerNode: dedupIdsPerNode,
  })
  const accept = (): unknown => verdicts.push('accepted')
  const remote = {
    agentId: link.agent_id,
    epoch: link.epoch,
    nextSequence: link.next_sequence,
    key: keyOf(link.agent_id),
  }
  const fake = { remote, offsetMs: link.clock_offset_ms, violations: 0, destroy: () => {} } as unknown as Link
  const inbox = createInbox({
    agentId: receiver.agent_id,
    network: receiver.network,
    epoch: receiver.epoch,
    clock,
    tunables: DEFAULTS,
    telemetry,
    dedup,
    foreign: createArrivals({
      agentId: receiver.agent_id,
      networkName: receiver.network,
      links: { get: (agentId: string) => (agentId === link.agent_id ? fake : undefined) } as unknown as Links,
      keys: {
        find: keyOf,
        verifier: keyOf,
        learn: () => Promise.resolve(),
        vain: () => true,
        named: () => undefined,
        keep: () => {},
        document: () => undefined,
      },
      ways: createWays({ clock, most: 1 }),
      tunables: DEFAULTS,
      telemetry,
      pending: { awaits: () => false, distrust: () => {} },
      pass: () => {},
    }),
    events: {
      admitted: accept,
      duplicate: accept,
      resubmitted: () => false,
      answer: accept,
      cancel: accept,
      heartbeat: accept,
      refused: (_, error) => told.push(error.code),
    },
  })
  inbox.linked(fake, true)
  const hear = createBroadcasts({ network: receiver.network, clock, tunables: DEFAULTS, telemetry, dedup })
  return { inbox, hear, link: fake, verdicts, told }
}

function bodyOf(vector: Read): Uint8Array {
  const reader = new Reader(unhex(vector.bytes))
  const body = reader.part(MAX_SINGLE_FRAME, 'the frame')
  reader.end('the frame')
  return body
}

function arrive(vector: Read): Scene {
  const at = scene('link' in vector ? vector.link : receiver.link)
  at.inbox.receive(at.link, bodyOf(vector))
  return at
}

describe('an inbox', () => {
  it.each(accepted as Read[])('takes $name', (vector) => {
    expect(arrive(vector).verdicts).toEqual(['accepted'])
  })

  it.each([...refused, ...not_offered] as Read[])('refuses $name: $code', (vector) => {
    expect(arrive(vector).verdicts).toEqual([vector.code])
  })

  const FORGED = ['WRONG_SENDER', 'BAD_SIGNATURE', 'BAD_PROOF', 'PAYLOAD_MISMATCH', 'BAD_HOPS']
  const forged = [...refused, ...not_offered].filter(({ code }: Read) => FORGED.includes(code))

  it('neither answers nor remembers what is not authentic: the place is still free', () => {
    expect(forged.length).toBeGreaterThan(5)
    for (const vector of forged) {
      const { inbox, link, verdicts, told } = arrive(vector)
      expect(told).toEqual([])
      expect(link.violations).toBe(1)
      inbox.receive(link, bodyOf(accepted[0]))
      expect(verdicts.at(-1)).toBe('accepted')
    }
  })

  it('uses up the place of what is authentic and refused, and tells the sender', () => {
    const late = ['EXPIRED', 'EXPIRY_TOO_FAR', 'PEER_RESTARTED']
    const work = refused.filter(
      ({ name, code, link }: Read) =>
        late.includes(code) && !link && !name.includes('cancel') && !name.includes('forwarded'),
    )
    expect(work.length).toBeGreaterThan(4)
    for (const vector of work) {
      const { inbox, link, verdicts, told } = arrive(vector)
      expect(told).toEqual([vector.code])
      expect(link.violations).toBe(0)
      inbox.receive(link, bodyOf(accepted[0]))
      expect(verdicts.at(-1)).toBe('STALE_SEQUENCE')
    }
  })
})

describe('a broadcast', () => {
  const hear = (vector: Read): string => {
    try {
      scene().hear(vector.topic, unhex(vector.bytes), (agentId) => keyOf(agentId))
      return 'accepted'
    } catch (error) {
      if (isHermesError(error)) return error.code
      throw error
    }
  }

  it.each([...broadcasts, ...refused_broadcasts] as Read[])('is judged: $name', (vector) => {
    expect(hear(vector)).toBe(vector.code ?? 'accepted')
  })

  it('is heard once', () => {
    const at = scene()
    const [{ bytes, topic }] = broadcasts
    const twice = () => at.hear(topic, unhex(bytes), (agentId) => keyOf(agentId))
    twice()
    expect(twice).toThrow(expect.objectContaining({ code: 'MESSAGE_CONFLICT' }))
  })
})
