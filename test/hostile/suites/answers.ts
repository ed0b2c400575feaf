import { randomBytes } from 'node:crypto'
import type { MessageType } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import type { Crafted, Draft } from '../craft.ts'
import { eventually, within } from '../eventually.ts'
import { hostileKey, isWork, otherKey, provided, settled, watched } from '../provider.ts'
import type { Heard, RawLink } from '../raw-link.ts'
import { scene } from '../scene.ts'

const PAYLOADS: Readonly<Partial<Record<MessageType, unknown>>> = {
  response: { output: 'forged', status: 'completed' },
  error: { error_code: 'HANDLER_ERROR', error_message: 'forged', error_source: 'tool', retryable: false },
  ack: {},
  end: {},
}

describe('F-02 verification applied on one direction only', () => {
  const forgeries: readonly (readonly [string, string, Draft])[] = [
    ['without a signature', 'BAD_SIGNATURE', { sign: () => Buffer.alloc(64) }],
    ['signed by another key', 'BAD_SIGNATURE', { sign: (signed) => otherKey.key.sign(signed) }],
    [
      'changed after it was signed',
      'PAYLOAD_MISMATCH',
      { swapPayload: (bytes) => Buffer.from(Buffer.from(bytes).toString().replace('}', ' }')) },
    ],
  ]
  /** Only an answer may come by way of another agent, and then it must be signed by who is named. */
  const ofAnother: Draft = { sender: { agent_id: 'other', key: otherKey.key.publicKey.fingerprint } }
  const direct = [...forgeries, ['of another sender', 'WRONG_SENDER', ofAnother] as const]

  it.each(['response', 'error', 'ack', 'end'] as const)('a forged %s is never the answer of a call', async (type) => {
    const world = scene()
    const { victim, links } = await provided(world, [hostileKey, otherKey])
    const [link] = links as [RawLink, RawLink]
    // An earlier answer, to be shown again under a later call.
    const first = victim.peer.callDynamic('work', 1, { agent: 'hostile' })
    const earlier = await link.next(isWork)
    const old = link.answer(earlier, 'old')
    expect(await first).toBe('old')

    const call = watched(victim.peer.callDynamic('work', 2, { agent: 'hostile', timeoutMs: 30_000 }))
    const asked = await link.next(isWork)
    expect(asked.header.correlation_id).not.toBe(earlier.header.correlation_id)
    for (const [, code, draft] of [...forgeries, ['of another sender', 'BAD_SIGNATURE', ofAnother] as const]) {
      victim.mark()
      link.answer(asked, 'forged', { message_type: type, payload: PAYLOADS[type], ...draft })
      await victim.until('envelope.refused', (event) => event.code === code)
      await settled(link)
      expect(call.ended).toBe(false)
    }
    victim.mark()
    link.stream.send(old.frame)
    link.answer(earlier, 'old again', { message_type: type, payload: PAYLOADS[type] })
    await settled(link)
    expect(call.ended).toBe(false)
    expect(victim.of('answer.late')).toHaveLength(2)
    // The control: an honest answer to the same call passes.
    link.answer(asked, 'true')
    await call.promise
    expect(call).toMatchObject({ value: 'true', error: undefined })
    expect(world.escaped).toEqual([])
  })

  it.each(['ack', 'end'] as const)('an honest %s is no answer to a request', async (type) => {
    const world = scene()
    const { victim, link } = await provided(world)
    const call = watched(victim.peer.callDynamic('work', 1, { timeoutMs: 30_000 }))
    const asked = await link.next(isWork)
    link.answer(asked, null, { message_type: type, payload: {} })
    await settled(link)
    expect(call.ended).toBe(false)
    link.answer(asked, 'answer')
    await call.promise
    expect(call).toMatchObject({ value: 'answer', error: undefined })
  })

  it('an event that is forged reaches nobody', async () => {
    const world = scene()
    const { victim, link } = await provided(world)
    const heard: unknown[] = []
    victim.peer.onEvent('tick', ({ data, sender }) => heard.push([sender, data]))
    const tick = (draft: Draft = {}) =>
      link.send({ message_type: 'event', target_capability: 'tick', payload: { data: 'x' }, ...draft })
    const sound = tick()
    await eventually(() => heard.length === 1, 'the control')
    for (const [, code, draft] of direct) {
      victim.mark()
      tick({ sequence: 50, ...draft })
      await victim.until('envelope.refused', (event) => event.code === code)
    }
    link.stream.send(sound.frame)
    await settled(link)
    expect(heard).toEqual([['hostile', 'x']])
    expect(victim.of('window.gap')).toEqual([])
  })

  it('a forged cancel stops nothing, a forged heartbeat moves nothing', async () => {
    const world = scene()
    const { victim, link } = await provided(world)
    const asked = link.craft({ target_capability: 'echo', payload: { input: 'go on' } })
    for (const [, code, draft] of direct) {
      victim.mark()
      link.send({
        message_type: 'cancel',
        payload: { message_id: asked.messageId, expires_at: Date.now() + 60_000 },
        ...draft,
      })
      await victim.until('envelope.refused', (event) => event.code === code)
      victim.mark()
      link.send({
        message_type: 'heartbeat',
        payload: { time: Date.now() - 300_000, reply: false, received: 9999 },
        ...draft,
      })
      await victim.until('envelope.refused', (event) => event.code === code)
    }
    link.stream.send(asked.frame)
    expect((await link.answerTo(asked)).payload).toMatchObject({ output: 'go on' })
    // A clock that had been moved by five minutes would make this one seem expired, or from the future.
    const now = link.request('echo', 'now', { ordered: false, timestamp: Date.now(), expires_at: Date.now() + 5000 })
    expect((await link.answerTo(now)).payload).toMatchObject({ output: 'now' })
  })

  it('what an answer carries is checked too: no nonsense becomes a result', async () => {
    const world = scene()
    const { victim, link } = await provided(world)
    const nonsense: readonly [string, MessageType, unknown, string][] = [
      ['no JSON', 'response', Buffer.from('{"output":'), 'INVALID_PAYLOAD'],
      ['no output', 'response', { status: 'completed' }, 'INVALID_PAYLOAD'],
      ['an unknown status', 'response', { output: 1, status: 'complete' }, 'INVALID_PAYLOAD'],
      ['a field that nobody knows', 'response', { output: 1, status: 'completed', more: 1 }, 'INVALID_PAYLOAD'],
      ['a key twice', 'response', Buffer.from('{"output":1,"status":"completed","output":2}'), 'INVALID_PAYLOAD'],
      [
        'too deep',
        'response',
        Buffer.from(`{"status":"completed","output":${'['.repeat(40)}${']'.repeat(40)}}`),
        'INVALID_PAYLOAD',
      ],
      [
        'a code that only this side may say',
        'error',
        { error_code: 'NOT_STARTED', error_message: 'x', error_source: 'sender', retryable: true },
        'HANDLER_ERROR',
      ],
      [
        'a code that nobody knows',
        'error',
        { error_code: 'NEWER', error_message: 'x', error_source: 'tool', retryable: true },
        'HANDLER_ERROR',
      ],
    ]
    for (const [what, message_type, payload, code] of nonsense) {
      const call = watched(victim.peer.callDynamic('work', what, { timeoutMs: 30_000 }))
      link.answer(await link.next(isWork), null, { message_type, payload })
      await within(5000, `the end of a call with ${what}`, call.promise)
      expect([what, (call.error as { code?: string })?.code]).toEqual([what, code])
      expect((call.error as { attempts: unknown[] }).attempts).toHaveLength(1)
    }
    expect(victim.peer.balance()).toMatchObject({ calls: nonsense.length, failed: nonsense.length, inFlight: 0 })
    expect(world.escaped).toEqual([])
  })
})

describe('answers that are swapped', () => {
  it('across 100 calls to two agents: each call gets its own', async () => {
    const world = scene()
    const { victim, links } = await provided(world, [hostileKey, otherKey])
    const [a, b] = links as [RawLink, RawLink]
    const calls = Array.from({ length: 100 }, (_, index) =>
      victim.peer.callDynamic('work', index, { agent: index % 2 === 0 ? 'hostile' : 'other', timeoutMs: 60_000 }),
    )
    const asked = { a: [] as Heard[], b: [] as Heard[] }
    for (let i = 0; i < 50; i++) {
      asked.a.push(await a.next(isWork))
      asked.b.push(await b.next(isWork))
    }
    const input = ({ payload }: Heard) => payload.input as number
    victim.mark()
    // Each answers for the other.
    for (const one of asked.b) a.answer(one, `stolen ${input(one)}`)
    for (const one of asked.a) b.answer(one, `stolen ${input(one)}`)
    await settled(a)
    await settled(b)
    expect(victim.of('answer.late')).toHaveLength(100)
    // The header of one answer over the payload of another, as often as a link stands it.
    const headers = asked.a
      .slice(0, 6)
      .map((one) => a.craft({ ...answerTo(one), payload: { output: input(one), status: 'completed' } }))
    for (const [index, header] of headers.entries()) {
      a.stream.send(swapped(header, headers[(index + 1) % headers.length] as Crafted))
    }
    await eventually(() => victim.of('envelope.refused').length === 6, 'six refusals')
    expect(new Set(victim.of('envelope.refused').map(({ code }) => code))).toEqual(new Set(['PAYLOAD_MISMATCH']))
    // And each true answer is said again under the next call, before that one is answered.
    let last: Crafted | undefined
    for (const one of asked.a) {
      if (last) a.stream.send(last.frame)
      last = a.answer(one, input(one))
    }
    for (const one of asked.b) b.answer(one, input(one))
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 100 }, (_, index) => index))
    expect(victim.peer.balance()).toMatchObject({ calls: 100, succeeded: 100, failed: 0 })
    expect(world.escaped).toEqual([])
  })

  const answerTo = ({ header, leaf }: Heard): Draft => ({
    message_type: 'response',
    message_id: header.message_id,
    correlation_id: header.correlation_id,
    trace_id: header.trace_id,
    in_reply_to: leaf,
  })

  /** The header and signature of one, the payload of the other: of equal length, so that only its hash can tell. */
  function swapped(one: Crafted, other: Crafted): Uint8Array {
    const bytes = Buffer.from(one.frame)
    const at = bytes.indexOf(one.payload)
    const payload = other.payload.length === one.payload.length ? other.payload : randomBytes(one.payload.length)
    bytes.set(payload, at)
    return bytes
  }
})
