import { isError } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { forever, gated, line, type Serve, WORK } from './line.ts'

const to =
  (next: string): Serve =>
  (_, ctx) =>
    ctx.forward(next)
const answer =
  (by: string): Serve =>
  ({ n }) => ({ by, n })

describe('handing on', () => {
  it('lets the next agent answer the caller, who has no link to it', async () => {
    const { net, a, started, of } = await line('abc', { serve: { b: to('c'), c: answer('c') } })
    const given = await net.until(a.request(WORK.none, { n: 7 }, { agent: 'b' }))
    expect(given).toMatchObject({ status: 'completed', output: { by: 'c', n: 7 }, agent: 'c', attempts: [] })
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
    const [first, last] = started.map(({ ctx }) => ctx)
    expect(first).toMatchObject({ caller: 'a', via: [] })
    expect(last).toMatchObject({
      caller: 'a',
      via: ['b'],
      messageId: given.messageId,
      traceId: given.traceId,
      correlationId: given.correlationId,
    })
    expect(of('b', 'handler.ended').map(({ code }) => code)).toEqual(['FORWARDED'])
    expect(of('b', 'forward.sent')).toMatchObject([{ from: 'a', to: 'c', hops: 1, messageId: given.messageId }])
    expect(of('b', 'forward.answered')).toMatchObject([{ from: 'c', to: 'a', messageType: 'response' }])
    expect(of('a', 'link.up').map(({ agentId }) => agentId)).not.toContain('c')
    expect(a.balance()).toMatchObject({ calls: 1, succeeded: 1, inFlight: 0 })
  })

  it('works where nobody has heard of anybody: keys come as manifests from the neighbour', async () => {
    const { net, a } = await line('abcd', { deaf: true, serve: { b: to('c'), c: to('d'), d: answer('d') } })
    const given = await net.until(a.request(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(given).toMatchObject({ output: { by: 'd', n: 1 }, agent: 'd' })
  })

  it('goes over several hops, and the answer comes back along them', async () => {
    const { net, a, started, of } = await line('abcd', { serve: { b: to('c'), c: to('d'), d: answer('d') } })
    const given = await net.until(a.request(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(given).toMatchObject({ output: { by: 'd', n: 1 }, agent: 'd' })
    expect(started.map(({ ctx }) => [ctx.caller, ctx.via])).toEqual([
      ['a', []],
      ['a', ['b']],
      ['a', ['b', 'c']],
    ])
    expect(of('c', 'forward.answered')).toHaveLength(1)
    expect(of('b', 'forward.answered')).toHaveLength(1)
  })

  it('leaves the choice to routing when the contract is named, and never goes back', async () => {
    const { net, a } = await line('abc', {
      serve: { a: answer('a'), b: (_, ctx) => ctx.forward(WORK.none), c: answer('c') },
    })
    const given = await net.until(a.request(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(given.agent).toBe('c')
  })

  it('brings declared errors back with their data, and who said it', async () => {
    const { a, failure } = await line('abc', {
      serve: {
        b: to('c'),
        c: (_, ctx) => {
          throw ctx.error('TOO_LARGE', { max: 3 })
        },
      },
    })
    const error = await failure(a.call(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(isError(error, WORK.none, 'TOO_LARGE') && error.data).toEqual({ max: 3 })
    expect(error.attempts).toMatchObject([{ agentId: 'c', code: 'TOO_LARGE' }])
  })

  it('brings a plan back that waits for confirmation', async () => {
    const { net, a } = await line('abc', {
      serve: { b: to('c'), c: (_, ctx) => ctx.needConfirmation({ plan: 'first this' }) },
    })
    const given = await net.until(a.request(WORK.none, { n: 1 }, { agent: 'b' }))
    expect(given).toMatchObject({ status: 'need_confirmation', partialResult: { plan: 'first this' }, agent: 'c' })
  })

  it('gives the next agent what is left of the time, or less when the handler says so', async () => {
    const { net, a, started, of } = await line('abc', {
      serve: {
        b: async ({ n }, ctx) => {
          await net.sleep('2s')
          return ctx.forward('c', n === 1 ? {} : { timeoutMs: 500 })
        },
        c: answer('c'),
      },
    })
    for (const n of [1, 2]) await net.until(a.call(WORK.none, { n }, { agent: 'b', timeoutMs: 5000 }))
    const [whole, less] = of('b', 'forward.sent').map(({ budgetMs }) => budgetMs)
    expect(whole).toBeGreaterThan(2500)
    expect(whole).toBeLessThanOrEqual(3000)
    expect(less).toBe(500)
    expect(started.filter(({ by }) => by === 'c')).toHaveLength(2)
  })

  it('keeps nothing of what has been answered: one place is enough for any number, one after another', async () => {
    const { net, a } = await line('abc', { serve: { b: to('c'), c: answer('c') }, tuning: { waysKept: 1 } })
    for (let n = 0; n < 5; n++) {
      expect(await net.until(a.call(WORK.none, { n }, { agent: 'b' }))).toEqual({ by: 'c', n })
    }
  })

  it('refuses with BUSY what it has no place for, before anything is sent', async () => {
    const { serve, open } = gated('c')
    const { net, a, started, failure, until } = await line('abc', {
      serve: { b: to('c'), c: serve },
      tuning: { waysKept: 1 },
    })
    const first = a.call(WORK.none, { n: 1 }, { agent: 'b' })
    await until(() => started.length === 2, 'the first to be handed on')
    const error = await failure(a.call(WORK.none, { n: 2 }, { agent: 'b', timeoutMs: 300 }))
    expect(['BUSY', 'TIMEOUT']).toContain(error.code)
    expect(error.attempts[0]).toMatchObject({ code: 'BUSY' })
    expect(started.filter(({ by, n }) => by === 'c' && n === 2)).toEqual([])
    open()
    expect(await net.until(first)).toEqual({ by: 'c', n: 1 })
  })
})

describe('a handler that has handed its call on', () => {
  it('is not heard any more, whatever it returns or throws', async () => {
    const { net, a, of } = await line('abc', {
      serve: {
        b: async ({ n }, ctx) => {
          await ctx.forward('c')
          if (n === 1) throw new Error('of the handler')
          return { by: 'b', n }
        },
        c: async ({ n }) => {
          await net.sleep('1s')
          return { by: 'c', n }
        },
      },
    })
    for (const n of [1, 2]) expect(await net.until(a.call(WORK.none, { n }, { agent: 'b' }))).toEqual({ by: 'c', n })
    expect(of('b', 'handler.ended').map(({ code }) => code)).toEqual(['FORWARDED', 'FORWARDED'])
    expect(of('a', 'answer.late')).toEqual([])
  })

  it('cannot hand it on twice', async () => {
    const codes: unknown[] = []
    const { net, a, started } = await line('abc', {
      serve: {
        b: async (_, ctx) => {
          const mark = await ctx.forward('c')
          await ctx.forward('c').catch((error: { code: string }) => codes.push(error.code))
          return mark
        },
        c: answer('c'),
      },
    })
    expect(await net.until(a.call(WORK.none, { n: 1 }, { agent: 'b' }))).toEqual({ by: 'c', n: 1 })
    expect(codes).toEqual(['INVALID_OPTION'])
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })

  it('has given its place back: it serves others while the next agent works', async () => {
    const { serve, open } = gated('c')
    const { net, a, peer, started, until } = await line('abc', {
      serve: { b: ({ n }, ctx) => (n === 1 ? ctx.forward('c') : { by: 'b', n }), c: serve },
      tuning: { inFlightPerNode: 1 },
    })
    const first = a.call(WORK.none, { n: 1 }, { agent: 'b' })
    await until(() => started.length === 2, 'the first to be handed on')
    expect(await net.until(peer('c').call(WORK.none, { n: 2 }, { agent: 'b' }))).toEqual({ by: 'b', n: 2 })
    open()
    await net.until(first)
  })
})

describe('what ends a call before its answer', () => {
  const ended = async (end: (scene: Awaited<ReturnType<typeof line>>, abort: () => void) => Promise<void> | void) => {
    const scene = await line('abcd', { serve: { b: to('c'), c: to('d'), d: forever } })
    const { a, started, until, of } = scene
    const stop = new AbortController()
    const call = a.call(WORK.none, { n: 1 }, { agent: 'b', timeoutMs: 10_000, signal: stop.signal })
    call.catch(() => undefined)
    await until(() => started.length === 3, 'the handler of the last agent')
    await end(scene, () => stop.abort())
    const { signal } = (started[2] as (typeof started)[number]).ctx
    await until(() => signal.aborted, 'the signal of the last handler')
    await until(() => of('d', 'handler.ended').length === 1, 'its end')
    return { ...scene, call, reason: signal.reason as { code: string } }
  }

  it('the caller’s signal: the cancel goes along the hops', async () => {
    const { reason, net, call, of } = await ended((_, abort) => abort())
    expect(reason.code).toBe('CANCELLED')
    expect(of('d', 'envelope.received').filter(({ messageType }) => messageType === 'cancel')).toMatchObject([
      { from: 'a' },
    ])
    await expect(net.until(call)).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  it('the deadline: the last handler is told within it, the caller at it', async () => {
    const { reason, net, call, of } = await ended(() => undefined)
    expect(['TIMEOUT', 'CANCELLED']).toContain(reason.code)
    await expect(net.until(call)).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(of('a', 'call.ended').map(({ ms }) => ms <= 10_250)).toEqual([true])
  })

  it('the caller’s crash: the forwarders say that nobody waits', async () => {
    const { reason, of } = await ended(({ net }) => net.crash('a'))
    expect(reason.code).toBe('CALLER_GONE')
    expect(of('d', 'envelope.received').filter(({ messageType }) => messageType === 'cancel')).toMatchObject([
      { from: 'c' },
    ])
  })

  it('a late answer reaches nobody, and disturbs nothing', async () => {
    const { serve, open } = gated('c')
    const { net, a, failure, of } = await line('abc', { serve: { b: to('c'), c: serve } })
    const error = await failure(a.call(WORK.none, { n: 1 }, { agent: 'b', timeoutMs: 1000 }))
    expect(error.code).toBe('TIMEOUT')
    open()
    await net.advance('5s')
    expect(of('a', 'envelope.refused')).toEqual([])
    expect(of('a', 'link.down')).toEqual([])
    expect(a.balance()).toMatchObject({ calls: 1, failed: 1, inFlight: 0 })
    expect(await net.until(a.call(WORK.none, { n: 2 }, { agent: 'b' }))).toEqual({ by: 'c', n: 2 })
  })
})
