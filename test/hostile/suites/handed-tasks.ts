import type { SignedHop } from '@hermes-peer/protocol'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { craft, type Draft } from '../craft.ts'
import { eventually } from '../eventually.ts'
import {
  ask,
  direct,
  fate,
  type Holder,
  handed,
  holder,
  isAnswer,
  middle,
  SUBMIT,
  taskOf,
  thirdKey,
} from '../forwarding/handed.ts'
import { readHop } from '../hops.ts'
import { hostileKey, otherKey, settled } from '../provider.ts'
import { scene, sharedScene } from '../scene.ts'

describe('a task that is handed on to the victim', () => {
  const world = sharedScene()
  let at: Holder
  beforeAll(async () => {
    at = await holder(world)
  })
  beforeEach(() => {
    at.victim.mark()
    at.started.length = 0
  })
  const two = [
    { by: thirdKey, next: 'hostile' },
    { by: hostileKey, next: 'victim' },
  ]

  it('the control: it is stored for the originator, who watches, answers and cancels it along the hop', async () => {
    const submit = handed([direct], SUBMIT)
    const { header, payload } = await at.told(submit)
    expect(header).toMatchObject({ message_type: 'ack', recipient: { agent_id: 'origin' } })
    const task_id = taskOf(submit)
    expect(payload).toEqual({ status: 'stored', task_id })
    await eventually(() => at.started.length === 1, 'the handler')
    expect(at.started[0]).toMatchObject({ caller: 'origin', via: ['hostile'] })
    const news = async (after: number) =>
      (await at.told(handed([direct], ask('hermes.task.watch', { task_id, after })))).payload.output as {
        state: string
        events: { n: number; type: string; question_id?: string }[]
      }
    const first = await news(0)
    expect(first.events.map(({ n }) => n).slice(0, 2)).toEqual([1_000_000_001, 1_000_000_002])
    const question = await eventually(
      async () => (await news(0)).events.find(({ type }) => type === 'question'),
      'the question',
    )
    const given = { task_id, question_id: question.question_id, answer: 'yes' }
    expect((await at.told(handed([direct], ask('hermes.task.input', given)))).payload).toMatchObject({
      output: { accepted: true },
    })
    const last = await eventually(async () => {
      const { state, events } = await news(0)
      return state === 'completed' && events.at(-1)
    }, 'the end')
    expect(last).toMatchObject({ type: 'end', payload: { output: 'yes' } })
    const far = handed(two, SUBMIT)
    expect((await at.told(far)).header.message_type).toBe('ack')
    const cancel = handed(two, ask('hermes.task.cancel', { task_id: taskOf(far) }))
    expect((await at.told(cancel)).payload).toMatchObject({ output: { state: 'cancelled' } })
  })

  it('a replay, by whatever hops, is one task; another payload under its id is none', async () => {
    const { submit } = await at.begun()
    for (let i = 0; i < 3; i++) expect((await at.told(submit)).header.message_type).toBe('ack')
    const message_id = submit.messageId
    expect(await fate(at, handed([direct], { ...SUBMIT, message_id, payload: { input: 2 } }))).toBe('MESSAGE_CONFLICT')
    expect((await at.told(handed(two, { ...SUBMIT, message_id }))).header.message_type).toBe('ack')
    // Nor does its end make it a new one.
    await at.told(handed([direct], ask('hermes.task.cancel', { task_id: taskOf(submit) })))
    expect((await at.told(submit)).header.message_type).toBe('ack')
    expect(at.started).toHaveLength(1)
  })

  it('of whoever does not own it: nobody sees, answers or ends it, by hops or without, the forwarder included', async () => {
    const { submit, taskId: task_id } = await at.begun()
    for (const [name, input] of [
      ['hermes.task.watch', { task_id, after: 0 }],
      ['hermes.task.input', { task_id, question_id: 'q1000000003', answer: 'stolen' }],
    ] as const) {
      expect(await fate(at, handed([direct], ask(name, input), { self: thirdKey }))).toBe('TASK_NOT_FOUND')
      expect((await at.link.answerTo(at.link.request(name, input, { ordered: false }))).payload).toMatchObject({
        error_code: 'TASK_NOT_FOUND',
      })
    }
    // What they cancel is a task of their own of that name, which there will never be.
    await at.told(handed([direct], ask('hermes.task.cancel', { task_id }), { self: thirdKey }))
    await at.link.answerTo(at.link.request('hermes.task.cancel', { task_id }, { ordered: false }))
    // What ends a call in the name of its forwarder ends no task.
    const expires_at = Date.now() + 60_000
    at.link.send({ message_type: 'cancel', payload: { message_id: submit.messageId, expires_at } })
    await settled(at.link)
    expect(at.started[0]?.signal.aborted).toBe(false)
    const watch = handed([direct], ask('hermes.task.watch', { task_id, after: 0 }))
    expect((await at.told(watch)).payload).toMatchObject({ output: { state: 'input_required' } })
  })

  it.each<[string, string, (draft: Draft) => ReturnType<typeof handed>]>([
    [
      'signed by the forwarder',
      'BAD_SIGNATURE',
      (draft) => handed([direct], { ...draft, sign: (m) => hostileKey.key.sign(m) }),
    ],
    [
      'under the key of the forwarder',
      'WRONG_SENDER',
      (draft) =>
        handed([direct], {
          ...draft,
          sender: { agent_id: 'origin', key: hostileKey.key.publicKey.fingerprint },
          sign: (m) => hostileKey.key.sign(m),
        }),
    ],
    ['without its hops', 'WRONG_SENDER', (draft) => handed([direct], draft, { change: () => [] })],
    [
      'with the first hop stripped',
      'BAD_HOPS',
      (draft) => handed(two, draft, { change: ([, last]) => [last as SignedHop] }),
    ],
    ['with its hops in another order', 'BAD_HOPS', (draft) => handed(two, draft, { change: (hops) => hops.reverse() })],
    [
      'with a forged hop of another agent',
      'BAD_HOPS',
      (draft) => handed([{ by: thirdKey, next: 'hostile', signer: hostileKey.key }, direct], draft),
    ],
    ['by more hops than it allows', 'TTL_EXPIRED', (draft) => handed(two, { ...draft, max_hops: 1 })],
  ])('in the name of the originator, %s: %s, for each thing that can be said of it', async (_, code, make) => {
    const own = sharedFor(code) ? at : await holder(scene())
    const { taskId: task_id } = await own.begun()
    const before = own.started.length
    for (const draft of [
      SUBMIT,
      ask('hermes.task.watch', { task_id, after: 0 }),
      ask('hermes.task.input', { task_id, question_id: 'q1000000003', answer: 'stolen' }),
      ask('hermes.task.cancel', { task_id }),
    ]) {
      expect(await fate(own, make(draft))).toBe(code)
    }
    expect(own.started).toHaveLength(before)
    expect(own.started.at(-1)?.signal.aborted).toBe(false)
  })

  it('a watch that is replayed takes one place, however often: the owner is told all the same', async () => {
    const { taskId: task_id } = await at.begun()
    const watch = (after: number) => handed([direct], ask('hermes.task.watch', { task_id, after }))
    const news = await eventually(async () => {
      const { payload } = await at.told(watch(0))
      const { state, events } = payload.output as { state: string; events: { n: number }[] }
      return state === 'input_required' && events
    }, 'the question')
    const last = (news as { n: number }[]).at(-1)?.n as number
    const waits = watch(last)
    for (let i = 0; i < 64; i++) at.link.stream.send(waits.frame)
    await settled(at.link)
    const own = watch(last)
    at.link.stream.send(own.frame)
    await at.told(handed([direct], ask('hermes.task.cancel', { task_id })))
    expect((await at.link.answerTo(own)).payload).toMatchObject({ output: { state: 'cancelled' } })
    expect((await at.link.answerTo(waits)).payload).toMatchObject({ output: { state: 'cancelled' } })
  })

  it('lives no longer than the hop leaves it', async () => {
    const submit = handed([{ ...direct, hop: { budget_ms: 300 } }], SUBMIT)
    await at.told(submit)
    const task_id = taskOf(submit)
    // Nothing is told before it is stored, so the end may come a little after the rest.
    const end = await eventually(async () => {
      const { payload } = await at.told(handed([direct], ask('hermes.task.watch', { task_id, after: 0 })))
      const { state, events } = payload.output as { state: string; events: { payload?: { error_code: string } }[] }
      return state === 'failed' && events.at(-1)
    }, 'its end')
    expect((end as { payload?: { error_code: string } }).payload?.error_code).toBe('TIMEOUT')
    expect(world.escaped).toEqual([])
  })
})

/** What counts against a link would cut the one that the suite shares. */
const sharedFor = (code: string): boolean => code === 'TTL_EXPIRED'

describe('a victim that hands a task on', () => {
  it('sends the submit as it came, until the next agent has said that it has it; then it passes questions to it', async () => {
    const world = scene()
    const { victim, origin, next, submit, heard, taskId, take, watch } = await middle(world)
    expect((await origin.answerTo(submit)).payload).toEqual({ status: 'stored', task_id: taskId })
    expect(Buffer.compare(heard.frame.header, submit.header)).toBe(0)
    expect(Buffer.compare(heard.frame.signature, submit.signature)).toBe(0)
    expect(heard.frame.hops.map((hop) => readHop(hop).forwarder)).toEqual(['victim'])
    const again = await next.next(({ header }) => header.message_type === 'submit')
    expect(again.leaf).toBe(heard.leaf)
    // Until then the victim answers itself.
    expect((await origin.answerTo(watch())).payload).toMatchObject({ output: { state: 'working' } })
    await take()
    const asked = watch(2)
    const passed = await next.next(({ header }) => header.target_capability === 'hermes.task.watch')
    expect(passed.header.sender.agent_id).toBe('origin')
    expect(passed.frame.hops.map((hop) => readHop(hop).forwarder)).toEqual(['victim'])
    const output = { task_id: taskId, state: 'working', events: [] }
    next.answer(passed, output, { recipient: { agent_id: 'origin' } })
    const came = await origin.answerTo(asked)
    expect([came.header.sender.agent_id, came.payload.output]).toEqual(['hostile', output])
    expect(victim.of('task.handed')).toHaveLength(1)
    expect(world.escaped).toEqual([])
  })

  it('takes the word of the next agent alone for that', async () => {
    const world = scene()
    const { victim, origin, other, next, heard, ack, take } = await middle(world)
    const ofThird = (draft: Draft = {}) =>
      craft(
        { self: thirdKey, to: 'origin', toEpoch: 1, epoch: Date.now(), sequence: 1 },
        { ...ack, message_id: heard.header.message_id, in_reply_to: heard.leaf, ...draft },
      ).frame
    const forgeries: readonly (readonly [string, () => void])[] = [
      ['for another attempt', () => next.answer(heard, null, { ...ack, in_reply_to: 'ab'.repeat(32) })],
      ['for another agent', () => next.answer(heard, null, { ...ack, recipient: { agent_id: 'other' } })],
      ['from another neighbour', () => other.answer(heard, null, ack)],
      ['signed by another', () => next.answer(heard, null, { ...ack, sign: (m) => otherKey.key.sign(m) })],
      ['of a third agent', () => next.stream.send(ofThird())],
      ['that is none', () => next.answer(heard, null, { ...ack, payload: { status: 'perhaps' } })],
      ['that is a response', () => next.answer(heard, 'done', { recipient: { agent_id: 'origin' } })],
    ]
    for (const [what, send] of forgeries) {
      send()
      for (const link of [next, other, origin]) await settled(link)
      expect([what, victim.of('task.handed')]).toEqual([what, []])
      // It is still sent; each attempt may be answered.
      await next.next(({ header }) => header.message_type === 'submit')
    }
    await take()
    expect(origin.heard.filter(isAnswer).map(({ header }) => header.message_type)).toEqual(['ack'])
    expect(world.escaped).toEqual([])
  })

  it('tells of it to nobody else, and passes nothing of theirs on', async () => {
    const world = scene()
    const { other, next, taskId: task_id, take } = await middle(world)
    await take()
    const input = { task_id, question_id: 'q1', answer: 1 }
    for (const [name, given] of [
      ['hermes.task.watch', { task_id, after: 0 }],
      ['hermes.task.input', input],
    ] as const) {
      expect((await other.answerTo(other.request(name, given, { ordered: false }))).payload).toMatchObject({
        error_code: 'TASK_NOT_FOUND',
      })
    }
    // Nor to the agent that has it, who is not its owner either.
    const own = next.request('hermes.task.watch', { task_id, after: 0 }, { ordered: false })
    expect((await next.answerTo(own)).payload).toMatchObject({ error_code: 'TASK_NOT_FOUND' })
    await other.answerTo(other.request('hermes.task.cancel', { task_id }, { ordered: false }))
    await settled(next)
    expect(next.heard.filter(({ header }) => header.target_capability?.startsWith('hermes.task.'))).toEqual([])
  })

  it('hears why the next agent refuses it, and the owner does if nobody does better', async () => {
    const world = scene()
    const { victim, origin, next, heard, ended, watch } = await middle(world)
    const refusal = { error_code: 'VALIDATION_ERROR', error_message: 'no', error_source: 'receiver', retryable: false }
    next.answer(heard, null, { message_type: 'error', recipient: { agent_id: 'origin' }, payload: refusal })
    await victim.until('task.state', ({ state }) => state === 'failed')
    expect(ended).toEqual(['VALIDATION_ERROR'])
    const end = await eventually(async () => {
      const { state, events } = (await origin.answerTo(watch())).payload.output as { state: string; events: object[] }
      return state === 'failed' && events.at(-1)
    }, 'its end')
    expect(end).toMatchObject({ type: 'end', payload: { error_code: 'VALIDATION_ERROR' } })
  })

  it('says that it cannot ask whoever has it, once that agent is lost: at once, and as what may be asked again', async () => {
    const world = scene()
    const { victim, origin, next, take, watch } = await middle(world)
    await take()
    const waits = watch(2)
    await next.next(({ header }) => header.target_capability === 'hermes.task.watch')
    next.reset()
    await victim.until('link.down', ({ agentId }) => agentId === 'hostile')
    expect((await origin.answerTo(waits)).payload).toMatchObject({ error_code: 'PEER_UNREACHABLE', retryable: true })
    expect((await origin.answerTo(watch(2))).payload).toMatchObject({ error_code: 'PEER_UNREACHABLE' })
  })
})
