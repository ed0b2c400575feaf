import { type CallContext, capability, type HermesError, isHermesError, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { createTeam } from './support/team.ts'

type Peers = Record<'a' | 'b' | 'c', Peer>
const text = (name: string, more: object = {}) =>
  capability(name, { description: name, input: z.string(), output: z.any(), effects: 'none', ...more })

const inner = text('inner')
const outer = text('outer')
const ask = text('ask', { constraints: { maxConcurrency: 1 } })
const tell = text('tell', { constraints: { maxConcurrency: 1 } })
const same = text('same')
const more = text('more')
const back = text('back', { constraints: { maxConcurrency: 1 } })
const forth = text('forth', { constraints: { maxConcurrency: 1 } })
const steps = Array.from({ length: 4 }, (_, index) => text(`step${index}`))

const team = createTeam()
const peers = {} as Peers
let desk: Peer
const contexts: {
  name: string
  context: Pick<CallContext, 'traceId' | 'correlationId' | 'priority'>
  remainingMs: number
}[] = []
const errors: HermesError[] = []

const note = (name: string, context: CallContext) =>
  contexts.push({ name, context, remainingMs: context.remainingMs() })
/** Keeps the error as the handler saw it: further out only its code is told. */
const keep = async (run: Promise<unknown>) =>
  run.catch((error: unknown) => {
    if (isHermesError(error)) errors.push(error)
    throw error
  })

beforeAll(async () => {
  const ring = { a: 'b', b: 'c', c: 'a' } as const
  for (const name of ['a', 'b', 'c'] as const) {
    peers[name] = await team.start(name, (peer) => {
      peer
        .provide(inner, (_, context) => {
          note('inner', context)
          return name
        })
        .provide(outer, async (_, context) => {
          note('outer', context)
          await new Promise((resolve) => setImmediate(resolve))
          return peers[name].call(inner, 'x', { agent: ring[name] })
        })
        // a and b ask each other for the same.
        .provide(ask, (input) => keep(peers[name].call(ask, input, { agent: name === 'a' ? 'b' : 'a' })))
        // Each asks the next of the ring.
        .provide(same, (input) => keep(peers[name].call(same, input, { agent: ring[name] })))
        .provide(tell, () => `told by ${name}`)
        .provide(more, async (input) => {
          const timeoutMs = input === 'less' ? 4000 : 600_000
          await peers[name].call(inner, 'x', { agent: ring[name], timeoutMs, priority: 1 })
          return null
        })
        .provide(back, () => peers[name].call(forth, 'x', { agent: ring[name] }))
        .provide(forth, (_, { caller }) => peers[name].call(tell, 'x', { agent: caller }))
      for (const [index, step] of steps.entries()) {
        peer.provide(step, (input) => {
          // a#step0 → b#step0 → a#step1 → b#step1 → …
          const next = name === 'a' ? step : steps[index + 1]
          return next ? keep(peers[name].call(next, input, { agent: name === 'a' ? 'b' : 'a' })) : 'the end'
        })
      }
    })
  }
  desk = await team.start('desk')
  const all = [...Object.values(peers), desk]
  await Promise.all(
    all.flatMap((peer) => ['a', 'b', 'c'].filter((name) => name !== peer.agentId).map((name) => peer.manifest(name))),
  )
})
afterAll(() => team.stop())

const last = (name: string) => contexts.findLast((one) => one.name === name) as (typeof contexts)[number]

describe('a call made inside a handler', () => {
  it('inherits trace, correlation and priority with nothing passed on', async () => {
    const answer = await desk.request(outer, 'x', { agent: 'a', priority: 5 })
    const expected = { traceId: answer.traceId, correlationId: answer.correlationId, priority: 5 }
    expect(last('outer').context).toMatchObject(expected)
    expect(last('inner').context).toMatchObject(expected)
  })

  it('inherits the deadline: it never has more time than the call it serves', async () => {
    await desk.call(outer, 'x', { agent: 'a', timeoutMs: 10_000 })
    expect(last('outer').remainingMs).toBeLessThanOrEqual(10_000)
    expect(last('inner').remainingMs).toBeLessThanOrEqual(last('outer').remainingMs + 1)
  })

  it('may ask for less time and another priority, never for more time', async () => {
    await desk.call(more, 'less', { agent: 'c', timeoutMs: 15_000 })
    expect(last('inner').remainingMs).toBeLessThanOrEqual(4000)
    expect(last('inner').context.priority).toBe(1)
    await desk.call(more, 'more', { agent: 'c', timeoutMs: 15_000 })
    expect(last('inner').remainingMs).toBeLessThanOrEqual(15_000)
  })

  it('inherits nothing of another call that is served at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        desk.request(outer, String(i), { agent: 'a', priority: ((i % 5) + 1) as 1 }),
      ),
    )
    for (const { traceId } of answers) {
      const own = contexts.filter(({ context }) => context.traceId === traceId)
      expect(own.map(({ name }) => name).sort()).toEqual(['inner', 'outer'])
      expect(new Set(own.map(({ context }) => context.priority)).size).toBe(1)
    }
  })

  it('outside of any handler nothing is inherited', async () => {
    const one = await desk.request(outer, 'x', { agent: 'a' })
    const two = await desk.request(outer, 'x', { agent: 'a' })
    expect(one.traceId).not.toBe(two.traceId)
  })
})

describe('F-35 mutual waiting', () => {
  it('two agents that ask each other for the same: CALL_CYCLE with the path, at once and not by the deadline', async () => {
    errors.length = 0
    const since = performance.now()
    await expect(desk.call(ask, 'x', { agent: 'a', timeoutMs: 20_000 })).rejects.toMatchObject({
      code: 'HANDLER_ERROR',
    })
    expect(performance.now() - since).toBeLessThan(5000)
    expect(errors[0]).toMatchObject({ code: 'CALL_CYCLE', details: { path: ['a#ask', 'b#ask', 'a#ask'] } })
  })

  it('three agents in a ring: CALL_CYCLE with the whole path', async () => {
    errors.length = 0
    await expect(desk.call(same, 'x', { agent: 'a', timeoutMs: 20_000 })).rejects.toMatchObject({
      code: 'HANDLER_ERROR',
    })
    expect(errors[0]).toMatchObject({ code: 'CALL_CYCLE', details: { path: ['a#same', 'b#same', 'c#same', 'a#same'] } })
    expect(errors[0]?.message).toContain('a#same → b#same → c#same → a#same')
  })

  it('calling an agent back on another capability is allowed, with one place each', async () => {
    expect(await desk.call(back, 'x', { agent: 'a', timeoutMs: 10_000 })).toBe('told by a')
  })

  it('an agent sends a request of its own while the other waits for it: both are answered', async () => {
    const { a, b } = peers
    const answers = await Promise.all([
      a.call(tell, 'x', { agent: 'b' }),
      b.call(tell, 'x', { agent: 'a' }),
      a.call(tell, 'x', { agent: 'b' }),
    ])
    expect(answers).toEqual(['told by b', 'told by a', 'told by b'])
  })

  it('a callee that replies in the same tick is heard', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => desk.call(inner, 'x', { agent: 'c' })))
    expect(new Set(answers)).toEqual(new Set(['c']))
  })
})

describe('depth', () => {
  it('at most 5 calls wait for one another: DEPTH_EXCEEDED, in which the path stands', async () => {
    errors.length = 0
    await expect(
      desk.call(steps[0] as (typeof steps)[number], 'x', { agent: 'a', timeoutMs: 20_000 }),
    ).rejects.toMatchObject({ code: 'HANDLER_ERROR' })
    expect(errors[0]).toMatchObject({
      code: 'DEPTH_EXCEEDED',
      details: { path: ['a#step0', 'b#step0', 'a#step1', 'b#step1', 'a#step2', 'b#step2'] },
    })
  })

  it('five are allowed', async () => {
    // a#step2 → b#step2 → a#step3 → b#step3: the deepest has three before it.
    expect(await desk.call(steps[2] as (typeof steps)[number], 'x', { agent: 'a' })).toBe('the end')
  })
})
