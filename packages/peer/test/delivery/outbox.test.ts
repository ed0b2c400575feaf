import { encodePayload, HermesError, newMessageId, newSpanId, newTraceId } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS, type Tunables } from '../../src/defaults.ts'
import { createOutbox, type Draft } from '../../src/delivery/outbox.ts'
import { ownInstance } from '../../src/identity/own-instance.ts'
import type { Link, Receipt } from '../../src/link/link.ts'
import { systemRandom } from '../../src/random.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { keyNamed } from '../identity/support.ts'

const random = systemRandom()
const bytes = (length: number) => random.bytes(length)
const LOST = new HermesError('PEER_UNREACHABLE')

function scene(tuning: Partial<Tunables> = {}) {
  const clock = manualClock()
  const open: Link[] = []
  const unconfirmed: string[] = []
  const outbox = createOutbox({
    agentId: 'one',
    network: 'default',
    epoch: 1,
    key: () => keyNamed('one'),
    links: { get: () => open.find(({ state }) => state === 'open') } as never,
    clock,
    random,
    tunables: { ...DEFAULTS, ...tuning },
    telemetry: createTelemetry({ clock }),
    maxEnvelopeBytes: 1024 * 1024,
    unconfirmed: (_, leaf) => void unconfirmed.push(leaf),
  })
  return {
    outbox,
    unconfirmed,
    link(epoch = 1) {
      const receipts: (Receipt | undefined)[] = []
      const fake = {
        own: ownInstance(keyNamed('one'), keyNamed('one').publicKey, []),
        remote: { agentId: 'other', epoch, limits: { max_envelope_bytes: 1024 * 1024 } },
        state: 'open',
        blocked: false,
        destroyed: false,
        receipts,
        send: (_: Uint8Array, receipt?: Receipt) => void receipts.push(receipt),
        destroy: () => {
          fake.destroyed = true
        },
      }
      open.push(fake as never)
      return { fake, link: fake as unknown as Link }
    },
  }
}

const draft = (type: Draft['type'], more: Partial<Draft> = {}): Draft => ({
  type,
  payload: encodePayload('application/json', { input: 1 }),
  messageId: newMessageId(bytes),
  traceId: newTraceId(bytes),
  spanId: newSpanId(bytes),
  timeoutMs: 1000,
  ...(type === 'request' ? { capability: 'work' } : { inReplyTo: '0'.repeat(64) }),
  ...more,
})
const quiet = { written: () => undefined, failed: () => undefined }

describe('answers', () => {
  it('wait while the link takes nothing, and are not bounded as calls are', () => {
    const { outbox, link } = scene({ outboxPerPeer: 2 })
    const { fake, link: to } = link()
    fake.blocked = true
    let full = 0
    for (let i = 0; i < 3; i++) outbox.post(to, draft('request'), { ...quiet, failed: () => full++ })
    for (let i = 0; i < 50; i++) outbox.answer(to, draft('response'))
    expect([full, fake.receipts.length]).toEqual([1, 0])
    fake.blocked = false
    outbox.unblocked(to)
    expect(fake.receipts).toHaveLength(52)
  })

  it('of more bytes than all calls in flight may be answered with cut the link of who reads none', () => {
    const { outbox, link } = scene({ answerBytesWaiting: 100 })
    const { fake, link: to } = link()
    fake.blocked = true
    const answer = draft('response')
    for (let bytes = answer.payload.length; bytes <= 100; bytes += answer.payload.length) outbox.answer(to, answer)
    expect(fake.destroyed).toBe(false)
    outbox.answer(to, answer)
    expect(fake.destroyed).toBe(true)
  })

  it('are told to have arrived when they have', () => {
    const { outbox, link } = scene()
    const { fake, link: to } = link()
    let arrived = 0
    outbox.answer(to, draft('response'), () => arrived++)
    fake.receipts[0]?.arrived?.()
    expect(arrived).toBe(1)
  })

  it('go over another link when theirs ends before they have arrived, or before they were written', () => {
    const { outbox, link } = scene()
    const [first, second] = [link(), link()]
    outbox.answer(first.link, draft('response'))
    first.fake.blocked = true
    outbox.answer(first.link, draft('error', { payload: encodePayload('application/json', {} as never) }))
    first.fake.state = 'closed'
    outbox.lost(first.link, LOST)
    first.fake.receipts[0]?.lost?.(LOST)
    expect([first.fake.receipts.length, second.fake.receipts.length]).toEqual([1, 2])
  })

  it('do not go to another life', () => {
    const { outbox, link } = scene()
    const [first, second] = [link(1), link(2)]
    outbox.answer(first.link, draft('response'))
    first.fake.state = 'closed'
    first.fake.receipts[0]?.lost?.(LOST)
    expect(second.fake.receipts).toEqual([])
  })

  it('that nobody reads, more than one may ask for, end the link', () => {
    const { outbox, link } = scene({ answersWaiting: 10 })
    const { fake, link: to } = link()
    fake.blocked = true
    for (let i = 0; i < 10; i++) outbox.answer(to, draft('response'))
    expect(fake.destroyed).toBe(false)
    outbox.answer(to, draft('response'))
    expect(fake.destroyed).toBe(true)
  })

  it('that still wait are handed over before their links are closed', () => {
    const { outbox, link } = scene()
    const { fake, link: to } = link()
    fake.blocked = true
    outbox.answer(to, draft('response'))
    outbox.post(to, draft('request'), quiet)
    outbox.flush()
    expect(fake.receipts).toHaveLength(1)
  })
})

describe('a question', () => {
  it('is unconfirmed when its link ends without a receipt', () => {
    const { outbox, link, unconfirmed } = scene()
    const { fake, link: to } = link()
    const leaves = [outbox.write(to, draft('request')).leaf]
    outbox.post(to, draft('request'), { ...quiet, written: ({ leaf }) => void leaves.push(leaf) })
    for (const receipt of fake.receipts) receipt?.lost?.(LOST)
    expect(unconfirmed).toEqual(leaves)
  })

  it('that waits for a link goes over the one that takes over', () => {
    const { outbox, link } = scene()
    const [first, second] = [link(), link()]
    first.fake.blocked = true
    outbox.post(first.link, draft('request'), quiet)
    first.fake.state = 'retired'
    outbox.retired(first.link)
    expect(second.fake.receipts).toHaveLength(1)
  })

  it('fails at once over a link that has been closed', () => {
    const { outbox, link } = scene()
    const { fake, link: to } = link()
    fake.state = 'closed'
    const codes: string[] = []
    outbox.post(to, draft('request'), { ...quiet, failed: ({ code }) => void codes.push(code) })
    expect(codes).toEqual(['PEER_UNREACHABLE'])
  })
})

describe('a closed link', () => {
  it.each([false, true])('takes nothing, and costs no sequence, were it full (%s) or not', (blocked) => {
    const { outbox, link } = scene()
    const { fake, link: to } = link()
    Object.assign(fake, { state: 'closed', blocked })
    const failed: HermesError[] = []
    outbox.post(to, draft('request'), {
      written: () => expect.unreachable(),
      failed: (error) => failed.push(error),
    })
    expect(failed).toMatchObject([{ code: 'PEER_UNREACHABLE' }])
    expect(() => outbox.write(to, draft('request'))).toThrow(expect.objectContaining({ code: 'PEER_UNREACHABLE' }))
    expect(outbox.nextSequence('other')).toBe(1)
    outbox.lost(to, LOST)
    expect(failed).toHaveLength(1)
    expect(fake.receipts).toEqual([])
  })
})
