import type { SignedHop } from '@hermes-peer/protocol'
import { capability } from 'hermes-peer'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { actor } from '../actors.ts'
import { type Crafted, craft, type Draft, frameOf } from '../craft.ts'
import { chain, hopsBytes, type Step } from '../hops.ts'
import { hostileKey, settled, victimKey } from '../provider.ts'
import { dialLink, type LinkPlan, manifestOf, type RawLink } from '../raw-link.ts'
import { scene, sharedScene } from '../scene.ts'
import type { Victim } from '../victim.ts'

const originKey = actor('origin')
const thirdKey = actor('third')
const ghostKey = actor('ghost')
const manifests = (...of: readonly (typeof originKey)[]) =>
  Object.fromEntries(of.map((one) => [one.agentId, manifestOf(one)]))

const isAnswer = ({ header }: { header: { in_reply_to: unknown } }) => header.in_reply_to !== undefined

describe('what is handed on to the victim', () => {
  const world = sharedScene()
  let victim: Victim
  let link: RawLink
  const caught: { caller: string; via: readonly string[] }[] = []
  const seen = capability('seen', { description: 'Sees.', input: z.any(), output: z.any() })

  const fresh = async (plan: LinkPlan = {}) => {
    const others = manifests(originKey, thirdKey, ghostKey)
    link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, { others, ...plan })
    victim.mark()
  }

  beforeAll(async () => {
    victim = await world.peer({
      as: victimKey,
      allow: [hostileKey, originKey, thirdKey],
      prepare: (peer) =>
        peer.provide(seen, (_, { caller, via }) => {
          caught.push({ caller, via })
          return null
        }),
    })
    await fresh()
  })
  beforeEach(() => {
    victim.mark()
    caught.length = 0
  })

  /** An envelope of the originator, to the first of the steps, with hops. */
  const handed = (steps: readonly Step[], draft: Draft = {}, change = (hops: SignedHop[]) => hops): Crafted => {
    const [first] = steps
    const from = { self: originKey, to: first?.by.agentId ?? 'hostile', toEpoch: 1, epoch: Date.now(), sequence: 1 }
    return craft(from, {
      target_capability: 'seen',
      payload: { input: 1 },
      ...draft,
      hops: (leaf) => hopsBytes(change(chain(leaf, steps))),
    })
  }
  const direct: Step = { by: hostileKey, next: 'victim' }
  const two: readonly Step[] = [
    { by: thirdKey, next: 'hostile' },
    { by: hostileKey, next: 'victim' },
  ]

  it('the control: it is served in the name of the originator, and answered along the hop', async () => {
    const sent = handed([direct])
    link.stream.send(sent.frame)
    const { header } = await link.answerTo(sent)
    expect(header).toMatchObject({
      message_type: 'response',
      sender: { agent_id: 'victim' },
      recipient: { agent_id: 'origin' },
      message_id: sent.messageId,
    })
    expect(caught).toEqual([{ caller: 'origin', via: ['hostile'] }])
    const far = handed(two)
    link.stream.send(far.frame)
    expect((await link.answerTo(far)).header.recipient).toEqual({ agent_id: 'origin' })
    expect(caught[1]).toEqual({ caller: 'origin', via: ['third', 'hostile'] })
  })

  it('a replay, and another hop over the same message, start nothing: they get the answer that there is', async () => {
    const sent = handed([direct])
    for (let i = 0; i < 3; i++) {
      link.stream.send(sent.frame)
      expect((await link.answerTo(sent)).payload).toMatchObject({ status: 'completed' })
    }
    const [header, payload, signature] = [sent.header, sent.payload, sent.signature]
    const again = hopsBytes(chain(sent.leaf, [{ ...direct, hop: { timestamp: Date.now() + 5 } }]))
    link.stream.send(frameOf(header, payload, signature, again))
    await link.answerTo(sent)
    expect(caught).toHaveLength(1)
  })

  const forgeries: readonly (readonly [string, string, () => Uint8Array])[] = [
    ['with its hops stripped', 'WRONG_SENDER', () => handed([direct], {}, () => []).frame],
    ['with the first hop stripped', 'BAD_HOPS', () => handed(two, {}, ([, last]) => [last as SignedHop]).frame],
    ['with the last hop stripped', 'BAD_HOPS', () => handed(two, {}, ([first]) => [first as SignedHop]).frame],
    ['with its hops in another order', 'BAD_HOPS', () => handed(two, {}, (hops) => hops.reverse()).frame],
    ['with the hops of another message', 'BAD_HOPS', () => handed(two, {}, () => chain('ab'.repeat(32), two)).frame],
    [
      'with a forged hop of another agent',
      'BAD_HOPS',
      () => handed([{ by: thirdKey, next: 'hostile', signer: hostileKey.key }, direct]).frame,
    ],
    ['by a hop for another agent', 'BAD_HOPS', () => handed([{ ...direct, next: 'third' }]).frame],
    [
      'with a budget that was raised on the way',
      'BAD_HOPS',
      () =>
        handed(two, {}, ([first, last]) => [
          { body: rewritten((first as SignedHop).body), signature: (first as SignedHop).signature },
          last as SignedHop,
        ]).frame,
    ],
    [
      'that was handed to another agent first',
      'BAD_HOPS',
      () => handed([direct], { recipient: { agent_id: 'third' } }).frame,
    ],
    [
      'in the name of the originator, signed by the forwarder',
      'BAD_SIGNATURE',
      () => handed([direct], { sign: (signed) => hostileKey.key.sign(signed) }).frame,
    ],
    [
      'in the name of the originator, with the key of the forwarder',
      'WRONG_SENDER',
      () =>
        handed([direct], {
          sender: { agent_id: 'origin', key: hostileKey.key.publicKey.fingerprint },
          sign: (signed) => hostileKey.key.sign(signed),
        }).frame,
    ],
    [
      'in the name of the victim',
      'BAD_HOPS',
      () =>
        craft(
          { self: victimKey, to: 'hostile', toEpoch: 1, epoch: Date.now(), sequence: 1 },
          {
            target_capability: 'seen',
            payload: { input: 1 },
            hops: (leaf) => hopsBytes(chain(leaf, [direct])),
          },
        ).frame,
    ],
    [
      'with another payload',
      'PAYLOAD_MISMATCH',
      () => handed([direct], { swapPayload: () => Buffer.from('{"input":2}') }).frame,
    ],
    [
      'as a heartbeat',
      'MALFORMED',
      () =>
        handed([direct], {
          message_type: 'heartbeat',
          payload: { time: Date.now(), reply: true, received: 1 },
          target_capability: undefined,
        }).frame,
    ],
    [
      'as an answer',
      'MALFORMED',
      () =>
        handed([direct], { message_type: 'response', in_reply_to: 'ab'.repeat(32), target_capability: undefined })
          .frame,
    ],
  ]

  it.each(forgeries)('%s: %s, nobody is answered, and it counts against the link', async (_, code, make) => {
    await fresh()
    link.stream.send(make())
    expect(await victim.until('envelope.refused')).toMatchObject({ code, from: 'hostile' })
    await settled(link)
    expect(caught).toEqual([])
    expect(link.heard.filter(isAnswer)).toEqual([])
    // Nothing has been remembered of it: the honest one is served.
    const sent = handed([direct])
    link.stream.send(sent.frame)
    await link.answerTo(sent)
    expect(caught).toHaveLength(1)
    link.reset()
  })

  it('whoever keeps sending such things is cut', async () => {
    await fresh()
    for (let i = 0; i < 16; i++) link.stream.send((forgeries[0] as (typeof forgeries)[number])[2]())
    await link.untilEnded()
    await fresh()
  })

  it.each<[string, string, Draft, object]>([
    [
      'that may not be handed on',
      'TTL_EXPIRED',
      { max_hops: 0 },
      { details: { path: ['origin', 'hostile', 'victim'] } },
    ],
    ['of another network', 'WRONG_NETWORK', { network: 'other' }, {}],
    [
      'that has expired by any clock',
      'EXPIRED',
      { timestamp: Date.now() - 3_600_000, expires_at: Date.now() - 1_800_000 },
      {},
    ],
    [
      'that would wait for itself',
      'CALL_CYCLE',
      { path: ['victim#seen', 'origin#other'] },
      { details: { path: ['victim#seen', 'origin#other', 'victim#seen'] } },
    ],
    ['for what is not provided', 'CAPABILITY_NOT_FOUND', { target_capability: 'nothing' }, {}],
  ])('%s: %s, and the originator is told along the hop', async (_, code, draft, details) => {
    const sent = handed([direct], draft)
    link.stream.send(sent.frame)
    const { header, payload } = await link.answerTo(sent)
    expect(header).toMatchObject({ message_type: 'error', recipient: { agent_id: 'origin' } })
    expect(payload).toMatchObject({ error_code: code, ...details })
    expect(caught).toEqual([])
    expect(link.ended).toBe(false)
  })

  it('of an originator that is not admitted: NOT_ALLOWED, and asked for once in a while only', async () => {
    await fresh()
    const from = { self: ghostKey, to: 'hostile', toEpoch: 1, epoch: Date.now(), sequence: 1 }
    const draft: Draft = { target_capability: 'seen', payload: { input: 1 } }
    for (let i = 0; i < 3; i++) {
      const sent = craft(from, { ...draft, hops: (leaf) => hopsBytes(chain(leaf, [direct])) })
      link.stream.send(sent.frame)
      expect((await link.answerTo(sent)).payload).toMatchObject({ error_code: 'NOT_ALLOWED' })
    }
    expect(link.asked.filter((agent) => agent === 'ghost')).toHaveLength(1)
    expect(caught).toEqual([])
    expect(link.ended).toBe(false)
  })

  it('with a manifest of another key for an admitted agent: NOT_ALLOWED, and the true one is still taken', async () => {
    const world = scene()
    const victim = await world.peer({
      as: victimKey,
      allow: [hostileKey, originKey],
      prepare: (peer) => peer.provide(seen, () => null),
    })
    const impostor = manifestOf({ ...originKey, key: ghostKey.key })
    const raw = await world.raw(hostileKey)
    const liar = await dialLink(raw, hostileKey, victim.address, { others: { origin: impostor } })
    const sent = handed([direct])
    liar.stream.send(sent.frame)
    expect((await liar.answerTo(sent)).payload).toMatchObject({ error_code: 'NOT_ALLOWED' })
    liar.reset()
    const true_ = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, {
      others: manifests(originKey),
    })
    const again = handed([direct])
    true_.stream.send(again.frame)
    expect((await true_.answerTo(again)).payload).toMatchObject({ status: 'completed' })
    expect(world.escaped).toEqual([])
  })

  it('and replayed to a third agent: BAD_HOPS', async () => {
    const third = await world.peer({ as: thirdKey, allow: [hostileKey, originKey] })
    const other = await dialLink(await world.raw(hostileKey), hostileKey, third.address, {
      others: manifests(originKey),
    })
    other.stream.send(handed([direct], { target_capability: 'echo' }).frame)
    expect(await third.until('envelope.refused')).toMatchObject({ code: 'BAD_HOPS' })
    expect(third.served).toEqual([])
    expect(world.escaped).toEqual([])
  })
})

/** The same length, another number. */
function rewritten(body: Uint8Array): Uint8Array {
  return Buffer.from(Buffer.from(body).toString().replace('"budget_ms":5000', '"budget_ms":9000'))
}
