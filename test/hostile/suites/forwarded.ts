import { leafOf, type SignedHop, verifyHops } from '@hermes-peer/protocol'
import { capability } from 'hermes-peer'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { actor } from '../actors.ts'
import { type Crafted, craft, type Draft, frameOf } from '../craft.ts'
import { eventually, within } from '../eventually.ts'
import { chain, hopsBytes, readHop, type Step } from '../hops.ts'
import { hostileKey, isWork, otherKey, settled, victimKey, watched } from '../provider.ts'
import { capabilityEntry, dialLink, type LinkPlan, manifestOf, type RawLink } from '../raw-link.ts'
import { type Scene, scene, sharedScene } from '../scene.ts'
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

describe('a victim that hands on', () => {
  const relay = capability('work', { description: 'Is handed on.', input: z.any(), output: z.any(), effects: 'none' })

  /** origin → victim → hostile (who provides it), and another neighbour. */
  async function between(world: Scene, nextPlan: LinkPlan = {}) {
    const victim = await world.peer({
      as: victimKey,
      allow: [originKey, hostileKey, otherKey],
      prepare: (peer) => peer.provide(relay, (_, ctx) => ctx.forward('hostile')),
    })
    const origin = await dialLink(await world.raw(originKey), originKey, victim.address)
    const other = await dialLink(await world.raw(otherKey), otherKey, victim.address)
    const plan = { capabilities: [capabilityEntry('work')], ...nextPlan }
    const next = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, plan)
    await victim.until('directory.changed', ({ agentId }) => agentId === 'hostile')
    victim.mark()
    const sent = origin.request('work', 'x')
    const heard = await next.next(isWork)
    return { victim, origin, other, next, sent, heard }
  }
  const backTo: Draft = { recipient: { agent_id: 'origin' } }

  it('leaves envelope and signature as they were, adds one hop, and passes the answer on as it came', async () => {
    const world = scene()
    const { origin, next, sent, heard } = await between(world)
    const { frame } = heard
    expect(Buffer.compare(frame.header, sent.header)).toBe(0)
    expect(Buffer.compare(frame.payload, sent.payload)).toBe(0)
    expect(Buffer.compare(frame.signature, sent.signature)).toBe(0)
    const keys = new Map([originKey, victimKey].map(({ agentId, key }) => [agentId, key.publicKey]))
    const hop = verifyHops({
      header: heard.header,
      leaf: leafOf(frame.header),
      hops: frame.hops,
      neighbour: 'victim',
      self: 'hostile',
      keyOf: (agentId) => keys.get(agentId),
    })
    expect(hop).toEqual(readHop(frame.hops[0] as SignedHop))
    expect(hop?.budget_ms).toBeLessThanOrEqual(heard.header.timeout_ms)
    const answer = next.answer(heard, 'true', backTo)
    const came = await origin.answerTo(sent)
    expect(Buffer.compare(answer.frame, frameOf(came.frame.header, came.frame.payload, came.frame.signature))).toBe(0)
    expect(came.header.sender.agent_id).toBe('hostile')
  })

  it('passes only what answers it, from whom it handed on to; the way stays until then, and no longer', async () => {
    const world = scene()
    const { victim, origin, other, next, sent, heard } = await between(world)
    const forgeries: readonly [string, () => void][] = [
      ['for another attempt', () => next.answer(heard, 'x', { ...backTo, in_reply_to: 'ab'.repeat(32) })],
      ['for another agent', () => next.answer(heard, 'x', { recipient: { agent_id: 'other' } })],
      ['from another neighbour', () => other.answer(heard, 'x', backTo)],
      ['signed by another', () => next.answer(heard, 'x', { ...backTo, sign: (m) => otherKey.key.sign(m) })],
      [
        'in the name of another',
        () =>
          next.answer(heard, 'x', {
            ...backTo,
            sender: { agent_id: 'other', key: otherKey.key.publicKey.fingerprint },
          }),
      ],
      ['with another payload', () => next.answer(heard, 'x', { ...backTo, swapPayload: () => Buffer.from('{}') })],
      ['of another network', () => next.answer(heard, 'x', { ...backTo, network: 'other' })],
      ['that is an ack', () => next.answer(heard, 'x', { ...backTo, message_type: 'ack', payload: {} })],
    ]
    for (const [what, send] of forgeries) {
      send()
      await settled(next)
      await settled(other)
      await settled(origin)
      expect([what, origin.heard.filter(isAnswer)]).toEqual([what, []])
    }
    expect(next.ended).toBe(false)
    next.answer(heard, 'true', backTo)
    expect((await origin.answerTo(sent)).payload).toMatchObject({ output: 'true' })
    next.answer(heard, 'again', backTo)
    await settled(next)
    await settled(origin)
    expect(origin.heard.filter(isAnswer)).toEqual([])
    expect(victim.of('forward.answered')).toHaveLength(1)
    expect(world.escaped).toEqual([])
  })

  it('passes on the answer of an agent that it does not admit itself: who waits decides', async () => {
    const world = scene()
    const { origin, next, sent, heard } = await between(world, { others: manifests(thirdKey) })
    const third = { self: thirdKey, to: 'origin', toEpoch: 1, epoch: Date.now(), sequence: 1 }
    const answer = (draft: Draft = {}) =>
      craft(third, {
        message_type: 'response',
        message_id: heard.header.message_id,
        trace_id: heard.header.trace_id,
        in_reply_to: heard.leaf,
        payload: { output: 'of third', status: 'completed' },
        ...draft,
      })
    // Its manifest tells a forgery all the same.
    next.stream.send(answer({ sign: (signed) => hostileKey.key.sign(signed) }).frame)
    await settled(next)
    await settled(origin)
    expect(origin.heard.filter(isAnswer)).toEqual([])
    next.stream.send(answer().frame)
    expect((await origin.answerTo(sent)).header.sender.agent_id).toBe('third')
    expect(next.asked).toContain('third')
    // And the manifest is there for who asks for it.
    const asked = origin.request('hermes.manifest', { agent_id: 'third' }, { ordered: false })
    expect((await origin.answerTo(asked)).payload).toMatchObject({ output: { manifest: expect.any(String) } })
    const none = origin.request('hermes.manifest', { agent_id: 'nobody' }, { ordered: false })
    expect((await origin.answerTo(none)).payload).toMatchObject({ error_code: 'CAPABILITY_NOT_FOUND' })
  })

  it('a neighbour may end only what came through it', async () => {
    const world = scene()
    const { origin, other, next, sent, heard } = await between(world)
    const expires_at = Date.now() + 60_000
    other.send({ message_type: 'cancel', payload: { message_id: sent.messageId, expires_at } })
    await settled(other)
    await settled(next)
    expect(next.heard.filter(({ header }) => header.message_type === 'cancel')).toEqual([])
    origin.send({ message_type: 'cancel', payload: { message_id: sent.messageId, expires_at } })
    const cancel = await next.next(({ header }) => header.message_type === 'cancel')
    expect(cancel.header.sender.agent_id).toBe('origin')
    expect(cancel.frame.hops.map((hop) => readHop(hop).forwarder)).toEqual(['victim'])
    next.answer(heard, null, { ...backTo, message_type: 'error', payload: CANCELLED })
    expect((await origin.answerTo(sent)).payload).toMatchObject({ error_code: 'CANCELLED' })
  })

  it('says of work that it has handed on nothing that it does not know: the question goes on to who has it', async () => {
    const world = scene()
    const { victim, origin, next, sent } = await between(world)
    const question = { message_id: sent.messageId, recipient_epoch: origin.toEpoch, expires_at: Date.now() + 60_000 }
    const asked = origin.request('hermes.outcome', question, { ordered: false })
    const passed = await next.next(({ header }) => header.target_capability === 'hermes.outcome')
    expect(passed.header.sender.agent_id).toBe('origin')
    next.answer(passed, { state: 'running' }, backTo)
    const came = await origin.answerTo(asked)
    expect([came.header.sender.agent_id, came.payload.output]).toEqual(['hostile', { state: 'running' }])
    next.reset()
    await victim.until('link.down', ({ agentId }) => agentId === 'hostile')
    // What it was handed on to is lost: told as what it is, and asked again it is unknown.
    expect((await origin.answerTo(sent)).payload).toMatchObject({ error_code: 'PEER_UNREACHABLE' })
    const again = origin.request('hermes.outcome', question, { ordered: false })
    expect((await origin.answerTo(again)).payload).toMatchObject({ output: { state: 'unknown' } })
  })
})

const CANCELLED = { error_code: 'CANCELLED', error_message: 'x', error_source: 'sender', retryable: false }

describe('an answer that another agent than the one asked has made', () => {
  /** The victim asks hostile, who hands on. */
  async function asking(world: Scene, others: Record<string, Uint8Array>) {
    const victim = await world.peer({ as: victimKey, allow: [hostileKey, otherKey, thirdKey] })
    const plan = { capabilities: [capabilityEntry('work', { effects: 'once' })], others }
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, plan)
    const other = await dialLink(await world.raw(otherKey), otherKey, victim.address, { others })
    await victim.until('directory.changed', ({ agentId }) => agentId === 'hostile')
    victim.mark()
    const call = watched(victim.peer.callDynamic('work', 1, { agent: 'hostile', timeoutMs: 20_000 }))
    const heard = await link.next(isWork)
    const made = (by: typeof thirdKey, draft: Draft = {}) =>
      craft(
        { self: by, to: 'victim', toEpoch: 1, epoch: Date.now(), sequence: 1 },
        {
          message_type: 'response',
          message_id: heard.header.message_id,
          correlation_id: heard.header.correlation_id,
          trace_id: heard.header.trace_id,
          in_reply_to: heard.leaf,
          payload: { output: `of ${by.agentId}`, status: 'completed' },
          ...draft,
        },
      ).frame
    return { victim, link, other, call, heard, made }
  }

  it('is taken when its key is admitted, by the manifest that the neighbour shows', async () => {
    const world = scene()
    const { victim, link, call, made } = await asking(world, manifests(thirdKey))
    link.stream.send(made(thirdKey))
    await within(5000, 'the answer', call.promise)
    expect(call).toMatchObject({ value: 'of third', error: undefined })
    expect(victim.of('call.ended')).toMatchObject([{ agentId: 'third', code: 'OK' }])
  })

  it('ends the call with UNTRUSTED_ANSWER at once when it is not admitted', async () => {
    const world = scene()
    const { link, call, made } = await asking(world, manifests(ghostKey))
    link.stream.send(made(ghostKey))
    await within(5000, 'the end', call.promise)
    expect(call.error).toMatchObject({ code: 'UNTRUSTED_ANSWER', details: { agent: 'ghost', neighbour: 'hostile' } })
    expect(link.ended).toBe(false)
  })

  it('ends it so too when no manifest can be had, and the next call is served', async () => {
    const world = scene()
    const { victim, link, call, made } = await asking(world, {})
    link.stream.send(made(thirdKey))
    await within(5000, 'the end', call.promise)
    expect(call.error).toMatchObject({ code: 'UNTRUSTED_ANSWER' })
    const next = watched(victim.peer.callDynamic('work', 2, { agent: 'hostile', timeoutMs: 20_000 }))
    link.answer(await link.next(isWork), 'fine')
    await next.promise
    expect(next.value).toBe('fine')
  })

  it.each<[string, string, Draft]>([
    ['signed by the neighbour', 'BAD_SIGNATURE', { sign: (signed) => hostileKey.key.sign(signed) }],
    [
      'under the key of the neighbour',
      'WRONG_SENDER',
      {
        sender: { agent_id: 'third', key: hostileKey.key.publicKey.fingerprint },
        sign: (signed) => hostileKey.key.sign(signed),
      },
    ],
    ['with another payload', 'PAYLOAD_MISMATCH', { swapPayload: () => Buffer.from('{}') }],
    ['of another network', 'WRONG_NETWORK', { network: 'other' }],
    ['that has expired', 'EXPIRED', { timestamp: 1_700_000_000_000, expires_at: 1_700_000_060_000 }],
  ])('%s: %s, and the call waits on for the true one', async (_, code, draft) => {
    const world = scene()
    const { victim, link, call, made } = await asking(world, manifests(thirdKey))
    link.stream.send(made(thirdKey, draft))
    await victim.until('envelope.refused', (event) => event.code === code)
    await settled(link)
    expect(call.ended).toBe(false)
    link.stream.send(made(thirdKey))
    await call.promise
    expect(call.value).toBe('of third')
  })

  it('from another neighbour, or for another attempt, is no answer, and nobody is asked for a key', async () => {
    const world = scene()
    const { victim, link, other, call, made } = await asking(world, manifests(thirdKey))
    other.stream.send(made(thirdKey))
    link.stream.send(made(thirdKey, { in_reply_to: 'ab'.repeat(32) }))
    link.stream.send(made(thirdKey, { recipient: { agent_id: 'other' } }))
    await eventually(() => victim.of('answer.late').length === 3, 'three late answers')
    await settled(link)
    await settled(other)
    expect(call.ended).toBe(false)
    expect([...link.asked, ...other.asked]).not.toContain('third')
    link.stream.send(made(thirdKey))
    await call.promise
    expect(call.value).toBe('of third')
    expect(world.escaped).toEqual([])
  })
})
