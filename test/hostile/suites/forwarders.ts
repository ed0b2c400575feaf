import { leafOf, type SignedHop, verifyHops } from '@hermes-peer/protocol'
import { capability } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { actor } from '../actors.ts'
import { craft, type Draft, frameOf } from '../craft.ts'
import { eventually, within } from '../eventually.ts'
import { readHop } from '../hops.ts'
import { hostileKey, isWork, otherKey, settled, victimKey, watched } from '../provider.ts'
import { capabilityEntry, dialLink, type LinkPlan, manifestOf } from '../raw-link.ts'
import { type Scene, scene } from '../scene.ts'

const originKey = actor('origin')
const thirdKey = actor('third')
const ghostKey = actor('ghost')
const manifests = (...of: readonly (typeof originKey)[]) =>
  Object.fromEntries(of.map((one) => [one.agentId, manifestOf(one)]))

const isAnswer = ({ header }: { header: { in_reply_to: unknown } }) => header.in_reply_to !== undefined

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
