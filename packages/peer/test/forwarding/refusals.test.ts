import type { HermesError } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { line, type Serve, WORK } from './line.ts'

const to =
  (next: string): Serve =>
  (_, ctx) =>
    ctx.forward(next)
const answer =
  (by: string): Serve =>
  ({ n }) => ({ by, n })

/** Hands on, and keeps the error that this is refused with. */
const trying =
  (next: Parameters<Parameters<Serve>[1]['forward']>[0], errors: HermesError[]): Serve =>
  async (_, ctx) => {
    try {
      return await ctx.forward(next)
    } catch (error) {
      errors.push(error as HermesError)
      throw error
    }
  }

describe('F-34 delegation loops and growing graphs', () => {
  it('max_hops 0 forbids handing on: the handler sees it before anything is sent, and the caller is told', async () => {
    const errors: HermesError[] = []
    const { a, started, failure, of } = await line('abc', { serve: { b: trying('c', errors), c: answer('c') } })
    const error = await failure(a.call(WORK.none, { n: 1 }, { agent: 'b', maxHops: 0 }))
    expect(errors).toMatchObject([{ code: 'TTL_EXPIRED', details: { path: ['a', 'b'], max_hops: 0 } }])
    expect(error).toMatchObject({ code: 'TTL_EXPIRED', remote: true, details: { path: ['a', 'b'] } })
    expect(started.map(({ by }) => by)).toEqual(['b'])
    expect(of('b', 'forward.sent')).toEqual([])
  })

  it('stops where the hops end, and tells the caller the path', async () => {
    const { a, started, failure } = await line('abcd', { serve: { b: to('c'), c: to('d'), d: answer('d') } })
    const error = await failure(a.call(WORK.none, { n: 1 }, { agent: 'b', maxHops: 1 }))
    expect(error).toMatchObject({ code: 'TTL_EXPIRED', details: { path: ['a', 'b', 'c'], max_hops: 1 } })
    expect(error.attempts).toMatchObject([{ agentId: 'c', code: 'TTL_EXPIRED' }])
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })

  it.each([
    ['the caller', 'a', ['a', 'b', 'c', 'a']],
    ['a forwarder', 'b', ['a', 'b', 'c', 'b']],
    ['itself', 'c', ['a', 'b', 'c', 'c']],
  ])('never goes back to %s: CALL_CYCLE with the path', async (_, back, path) => {
    const errors: HermesError[] = []
    const serve = { a: answer('a'), b: to('c'), c: trying(back, errors) }
    const { a, started, failure } = await line('abc', { serve, also: [['a', 'c']] })
    const error = await failure(a.call(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(errors).toMatchObject([{ code: 'CALL_CYCLE', details: { path } }])
    expect(error).toMatchObject({ code: 'CALL_CYCLE', details: { path }, remote: true })
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })

  it.each([
    ['3', 'abcd', 3],
    ['6', 'abcdefg', 4],
  ])(
    'a ring of %s that hands on to whoever else offers it ends, with an error to the caller',
    async (_, names, most) => {
      const ids = [...names]
      const ring = ids.slice(1)
      // Each but the caller can reach all of the others: only what has been passed keeps it from going round.
      const also = ring.flatMap((one) => ring.map((other) => [one, other] as const))
      const errors: HermesError[] = []
      const serve = Object.fromEntries(ring.map((id) => [id, trying(WORK.none, errors)]))
      const { a, started, failure } = await line(names, { serve, also })
      await failure(a.call(WORK.none, { n: 1 }, { agent: 'b', timeoutMs: 20_000 }))
      expect(['NO_CANDIDATE', 'TTL_EXPIRED']).toContain(errors.at(-1)?.code)
      expect(errors).toHaveLength(1)
      expect(new Set(started.map(({ by }) => by)).size).toBe(started.length)
      expect(started.length).toBeLessThanOrEqual(most + 1)
    },
  )
})

describe('F-35 mutual waiting', () => {
  it('a waiting cycle of three agents is refused with the path, though one of them only handed on', async () => {
    const errors: HermesError[] = []
    const scene = await line('abc', {
      serve: {
        a: ({ n }) => scene.a.call(WORK.once, { n }, { agent: 'b' }),
        b: to('c'),
        c: async ({ n }) => {
          try {
            return await scene.peer('c').call(WORK.none, { n }, { agent: 'a', timeoutMs: 30_000 })
          } catch (error) {
            errors.push(error as HermesError)
            throw error
          }
        },
      },
      also: [['a', 'c']],
    })
    const { net, failure, peer } = scene
    const since = net.timeline.now()
    // b asks a, which asks b on another capability, who hands that on to c, which asks a for what a is waiting for.
    const error = await failure(peer('b').call(WORK.none, { n: 1 }, { agent: 'a', timeoutMs: 60_000 }))
    expect(error.code).toBe('HANDLER_ERROR')
    expect(errors).toMatchObject([
      { code: 'CALL_CYCLE', details: { path: ['a#work-none', 'c#work-once', 'a#work-none'] } },
    ])
    expect(net.timeline.now() - since).toBeLessThan(5000)
  })

  it('a call is not handed on to whoever waits for it: CALL_CYCLE with the path, at the forwarder', async () => {
    const errors: HermesError[] = []
    const scene = await line('abc', {
      serve: {
        // b asks c, which asks a on another capability, which asks b, who would hand that on to c.
        c: ({ n }) => scene.peer('c').call(WORK.once, { n: n + 1 }, { agent: 'a' }),
        a: ({ n }) => scene.a.call(WORK.none, { n: n + 1 }, { agent: 'b' }),
        b: trying('c', errors),
      },
      also: [['a', 'c']],
    })
    const error = await scene.failure(scene.peer('b').call(WORK.none, { n: 1 }, { agent: 'c', timeoutMs: 30_000 }))
    expect(error.code).toBe('HANDLER_ERROR')
    expect(errors).toMatchObject([
      { code: 'CALL_CYCLE', details: { path: ['c#work-none', 'a#work-once', 'c#work-none'] } },
    ])
    expect(scene.started.map(({ by, n }) => [by, n])).toEqual([
      ['c', 1],
      ['a', 2],
      ['b', 3],
    ])
  })
})

describe('a handler whose handing-on fails', () => {
  it('may choose another, or answer itself', async () => {
    const { net, a, started } = await line('abc', {
      serve: {
        b: async ({ n }, ctx) => {
          try {
            return await ctx.forward('nobody')
          } catch {
            return n === 1 ? ctx.forward('c') : { by: 'b', n }
          }
        },
        c: answer('c'),
      },
    })
    expect(await net.until(a.call(WORK.none, { n: 1 }, { agent: 'b' }))).toEqual({ by: 'c', n: 1 })
    expect(await net.until(a.call(WORK.none, { n: 2 }, { agent: 'b' }))).toEqual({ by: 'b', n: 2 })
    expect(started.map(({ by }) => by)).toEqual(['b', 'c', 'b'])
  })

  it('sees that the next agent does not provide the capability, with the reason', async () => {
    const errors: HermesError[] = []
    const { a, failure, of } = await line('abc', { serve: { b: trying('c', errors) } })
    const error = await failure(a.call(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(errors).toMatchObject([
      { code: 'NO_CANDIDATE', details: { candidates: [{ agent_id: 'c', reason: 'does not provide work-none' }] } },
    ])
    expect(error).toMatchObject({ code: 'HANDLER_ERROR', details: { cause_code: 'NO_CANDIDATE' } })
    expect(of('b', 'forward.sent')).toEqual([])
  })

  it.each([
    ['another contract than the one it serves', { name: 'work-once' }],
    ['nothing', undefined],
    ['a number', 7],
  ])('is told that %s is no target', async (_, target) => {
    const errors: HermesError[] = []
    const { a, failure } = await line('abc', { serve: { b: trying(target as never, errors), c: answer('c') } })
    await failure(a.call(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(errors).toMatchObject([{ code: 'INVALID_OPTION', details: { field: 'target' } }])
  })

  it('is told which form an agent id has', async () => {
    const errors: HermesError[] = []
    const { a, failure } = await line('ab', { serve: { b: trying('Not An Id', errors) } })
    await failure(a.call(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(errors).toMatchObject([{ code: 'INVALID_NAME', details: { field: 'target' } }])
  })

  it('finds out that the next agent is gone, before anything is sent', async () => {
    const errors: HermesError[] = []
    const { net, a, failure, of } = await line('abc', { serve: { b: trying('c', errors), c: answer('c') } })
    await net.crash('c')
    await net.advance(100)
    const error = await failure(a.call(WORK.once, { n: 1 }, { agent: 'b' }))
    expect(['NO_CANDIDATE', 'PEER_UNREACHABLE']).toContain(errors[0]?.code)
    expect(['HANDLER_ERROR', 'PEER_UNREACHABLE']).toContain(error.code)
    expect(of('b', 'forward.sent')).toEqual([])
  })

  it('cannot hand on what has been cancelled', async () => {
    const errors: HermesError[] = []
    const { net, a, started, until, of } = await line('abc', {
      serve: {
        b: async (_, ctx) => {
          await net.sleep('1s')
          return trying('c', errors)({ n: 1 }, ctx)
        },
        c: answer('c'),
      },
    })
    const stop = new AbortController()
    const call = a.call(WORK.none, { n: 1 }, { agent: 'b', signal: stop.signal })
    call.catch(() => undefined)
    await until(() => started.length === 1, 'the handler')
    stop.abort()
    await until(() => errors.length === 1, 'the refusal')
    expect(errors).toMatchObject([{ code: 'CANCELLED' }])
    expect(of('b', 'forward.sent')).toEqual([])
  })
})

it.each([-1, 8, 1.5, '4'])('maxHops %j is no option', async (maxHops) => {
  const { a, failure } = await line('ab', { serve: { b: answer('b') } })
  expect(await failure(a.call(WORK.none, { n: 1 }, { agent: 'b', maxHops: maxHops as number }))).toMatchObject({
    code: 'INVALID_OPTION',
    details: { field: 'maxHops' },
  })
})
