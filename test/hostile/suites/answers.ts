import { randomBytes } from 'node:crypto'
import type { MessageType } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { type Actor, actor } from '../actors.ts'
import type { Crafted, Draft } from '../craft.ts'
import { eventually, within } from '../eventually.ts'
import { capabilityEntry, dialLink, type Heard, type RawLink } from '../raw-link.ts'
import { type Scene, scene } from '../scene.ts'
import { echo, slow, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const hostileKey = actor('hostile')
const otherKey = actor('other')

/** A victim that knows the hostile peer as the one who can `work`. */
async function provided(
  world: Scene,
  by: readonly Actor[] = [hostileKey],
  options: Partial<Parameters<Scene['peer']>[0]> = {},
) {
  const victim = await world.peer({ as: victimKey, allow: by, ...options })
  const links: RawLink[] = []
  for (const self of by) {
    const link = await dialLink(await world.raw(self), self, victim.address, {
      capabilities: [capabilityEntry('work')],
    })
    await victim.until('directory.changed', ({ agentId }) => agentId === self.agentId)
    links.push(link)
  }
  victim.mark()
  return { victim, links, link: links[0] as RawLink }
}

const isWork = ({ header }: Heard) => header.target_capability === 'work' && header.message_type === 'request'
const isCancel = ({ header }: Heard) => header.message_type === 'cancel'

/** A call whose end can be looked at without waiting for it. */
function watched(promise: Promise<unknown>) {
  const call = {
    ended: false,
    value: undefined as unknown,
    error: undefined as unknown,
    promise: promise.catch(() => undefined),
  }
  promise.then(
    (value) => Object.assign(call, { ended: true, value }),
    (error: unknown) => Object.assign(call, { ended: true, error }),
  )
  return call
}

/** Everything that was sent before has been handled once this is answered. */
async function settled(link: RawLink): Promise<void> {
  await link.answerTo(link.request('echo', 'settled', { ordered: false }))
}

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
    ['of another sender', 'WRONG_SENDER', { sender: { agent_id: 'other', key: otherKey.key.publicKey.fingerprint } }],
  ]

  it.each(['response', 'error', 'ack', 'end'] as const)('a forged %s is never the answer of a call', async (type) => {
    const world = scene()
    const { victim, link } = await provided(world)
    // An earlier answer, to be shown again under a later call.
    const first = victim.peer.callDynamic('work', 1)
    const earlier = await link.next(isWork)
    const old = link.answer(earlier, 'old')
    expect(await first).toBe('old')

    const call = watched(victim.peer.callDynamic('work', 2, { timeoutMs: 30_000 }))
    const asked = await link.next(isWork)
    expect(asked.header.correlation_id).not.toBe(earlier.header.correlation_id)
    for (const [, code, draft] of forgeries) {
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
    for (const [, code, draft] of forgeries) {
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
    for (const [, code, draft] of forgeries) {
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

describe('F-12 answer that arrives after the caller gave up', () => {
  it('is dropped and counted; the link and all other calls go on', async () => {
    const world = scene()
    const { victim, link } = await provided(world)
    const given: Heard[] = []
    const late = watched(victim.peer.callDynamic('work', 'late', { timeoutMs: 300 }))
    given.push(await link.next(isWork))
    const stop = new AbortController()
    const cancelled = watched(victim.peer.callDynamic('work', 'cancelled', { timeoutMs: 30_000, signal: stop.signal }))
    given.push(await link.next(isWork))
    const healthy = Array.from({ length: 10 }, (_, index) =>
      victim.peer.callDynamic('work', index, { timeoutMs: 30_000 }),
    )
    for (let i = 0; i < 10; i++) {
      const one = await link.next(isWork)
      link.answer(one, one.payload.input)
    }
    expect(await Promise.all(healthy)).toEqual(Array.from({ length: 10 }, (_, index) => index))

    await late.promise
    expect(late.error).toMatchObject({ code: 'TIMEOUT', messageId: given[0]?.header.message_id })
    stop.abort()
    await cancelled.promise
    expect(cancelled.error).toMatchObject({ code: 'CANCELLED' })
    // The other side is told to stop, in both cases.
    for (const one of given) {
      const { payload } = await link.next(isCancel)
      expect(payload).toMatchObject({ message_id: one.header.message_id })
    }

    victim.mark()
    for (const one of given) {
      link.answer(one, 'too late')
      link.answer(one, 'too late')
    }
    await eventually(() => victim.of('answer.late').length === 4, 'four late answers')
    const more = Array.from({ length: 5 }, (_, index) => victim.peer.callDynamic('work', index, { timeoutMs: 30_000 }))
    for (let i = 0; i < 5; i++) {
      const one = await link.next(isWork)
      link.answer(one, one.payload.input)
    }
    expect(await Promise.all(more)).toEqual([0, 1, 2, 3, 4])
    expect(link.ended).toBe(false)
    expect(victim.of('link.down')).toEqual([])
    expect(victim.peer.balance()).toMatchObject({ calls: 17, succeeded: 15, failed: 2, inFlight: 0 })
    expect(world.escaped).toEqual([])
  })

  it('gives its place back: as many more calls as may be in flight are sent and answered', async () => {
    const world = scene()
    const { victim, link } = await provided(world, [hostileKey], { tuning: { inFlightPerPeer: 4 } })
    for (let round = 0; round < 3; round++) {
      const stop = new AbortController()
      const late = Array.from({ length: 2 }, () => watched(victim.peer.callDynamic('work', 'late', { timeoutMs: 200 })))
      const cancelled = Array.from({ length: 2 }, () =>
        watched(victim.peer.callDynamic('work', 'cancelled', { timeoutMs: 30_000, signal: stop.signal })),
      )
      for (let i = 0; i < 4; i++) await link.next(isWork)
      stop.abort()
      await within(5000, 'their ends', Promise.all([...late, ...cancelled].map(({ promise }) => promise)))
    }
    const [candidate] = await victim.peer.find({ agent: 'hostile', capability: 'work' })
    expect(candidate?.reasons.join()).not.toContain('in flight')
    const healthy = Array.from({ length: 4 }, (_, index) => victim.peer.callDynamic('work', index, { timeoutMs: 5000 }))
    for (let i = 0; i < 4; i++) {
      const one = await link.next(isWork, 5000)
      link.answer(one, one.payload.input)
    }
    expect(await Promise.all(healthy)).toEqual([0, 1, 2, 3])
  })

  it('also between two real peers: a slow handler is told to stop at the deadline', async () => {
    const world = scene()
    const reasons: string[] = []
    const server = await startSlow(world, reasons)
    const client = await world.peer({ as: otherKey, allow: [victimKey], bootstrap: [server.address] })
    const call = client.peer.call(slow, null, { timeoutMs: 300 })
    const healthy = Promise.all(Array.from({ length: 10 }, (_, index) => client.peer.call(echo, index)))
    await expect(call).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(await healthy).toHaveLength(10)
    await eventually(() => reasons.length === 1, 'the signal of the handler', 5000)
    expect(await Promise.all([1, 2, 3, 4, 5].map((value) => client.peer.call(echo, value)))).toEqual([1, 2, 3, 4, 5])
    expect(client.of('link.down')).toEqual([])
    expect(world.escaped).toEqual([])
  })

  async function startSlow(world: Scene, reasons: string[]): Promise<Victim> {
    return world.peer({
      as: victimKey,
      allow: [otherKey],
      prepare: (peer) =>
        peer.provide(
          slow,
          (_, { signal }) =>
            new Promise((resolve) =>
              signal.addEventListener('abort', () => {
                reasons.push((signal.reason as { code: string }).code)
                // Answers all the same.
                resolve('done')
              }),
            ),
        ),
    })
  }
})
