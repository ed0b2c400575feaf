import { describe, expect, it } from 'vitest'
import { forever, gated, line, type Serve, WORK } from './line.ts'

const to =
  (next: string): Serve =>
  (_, ctx) =>
    ctx.forward(next)

/** a → b → c, where c works until it is told to end. */
async function working(contract: (typeof WORK)['none' | 'once'], more: Partial<Parameters<typeof line>[1]> = {}) {
  const gate = gated('c')
  const scene = await line('abc', { serve: { b: to('c'), c: gate.serve }, ...more })
  const call = scene.a.request(contract as typeof WORK.none, { n: 1 }, { agent: 'b', timeoutMs: 30_000 })
  call.catch(() => undefined)
  await scene.until(() => scene.started.length === 2, 'the handler of the next agent')
  const since = scene.net.timeline.now()
  return { ...scene, call, open: gate.open, tookMs: () => scene.net.timeline.now() - since }
}

describe('the next agent is lost after it has started', () => {
  it('effects once: OUTCOME_UNKNOWN in time, and never a second start', async () => {
    const { net, failure, call, started, tookMs } = await working(WORK.once)
    await net.crash('c')
    const error = await failure(call)
    expect(error.code).toBe('OUTCOME_UNKNOWN')
    expect(tookMs()).toBeLessThan(10_000)
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })

  it('effects none: the caller goes on elsewhere', async () => {
    // d can do it too, and a can reach it.
    const gate = gated('c')
    const scene = await line('abcd', {
      serve: { b: to('c'), c: gate.serve, d: ({ n }) => ({ by: 'd', n }) },
      also: [['a', 'd']],
    })
    const call = scene.a.request(WORK.none, { n: 1 }, { timeoutMs: 30_000 })
    call.catch(() => undefined)
    await scene.until(() => scene.started.length > 0, 'a handler')
    if (scene.started[0]?.by === 'b') {
      await scene.until(() => scene.started.length === 2, 'the handler of the next agent')
      await scene.net.crash('c')
    }
    expect((await scene.net.until(call)).agent).toBe('d')
  })

  it('effects none and nobody else: PEER_UNREACHABLE that names who was lost', async () => {
    const { net, failure, call, tookMs, of } = await working(WORK.none)
    await net.crash('c')
    const error = await failure(call)
    expect(error.attempts.map(({ code }) => code)).toContain('PEER_UNREACHABLE')
    expect(tookMs()).toBeLessThan(30_250)
    expect(of('b', 'forward.lost')).toMatchObject([{ to: 'c' }])
  })

  it('silently: a probe finds it out, and the caller is told long before its deadline', async () => {
    const { net, failure, call, tookMs } = await working(WORK.once)
    net.faults.apart(net.peerId('b'), net.peerId('c'))
    const error = await failure(call)
    expect(error.code).toBe('OUTCOME_UNKNOWN')
    expect(tookMs()).toBeLessThan(28_000)
  })
})

describe('a link that is lost for a moment', () => {
  it('between forwarder and next agent: the question is passed on, and the answer still comes', async () => {
    const { net, call, open, until, of, started } = await working(WORK.once)
    net.faults.cut(net.peerId('b'), net.peerId('c'), { afterBytes: 0 })
    await until(() => of('a', 'call.outcome').length > 0, 'the question')
    open()
    expect(await net.until(call)).toMatchObject({ agent: 'c', output: { by: 'c', n: 1 } })
    expect(of('a', 'call.outcome').map(({ state }) => state)).not.toContain('unseen')
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })

  it('between caller and forwarder: what was answered meanwhile is asked for, and comes from who made it', async () => {
    const { net, call, open, until, of, started } = await working(WORK.once)
    net.faults.cut(net.peerId('a'), net.peerId('b'), { afterBytes: 0 })
    await until(() => of('a', 'link.down').some(({ agentId }) => agentId === 'b'), 'the loss')
    open()
    expect(await net.until(call)).toMatchObject({ agent: 'c', output: { by: 'c', n: 1 } })
    expect(of('a', 'call.outcome').at(-1)).toMatchObject({ agentId: 'c', state: 'done' })
    expect(of('a', 'call.outcome').map(({ state }) => state)).not.toContain('unseen')
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })
})

describe('the forwarder is lost', () => {
  it('effects once: OUTCOME_UNKNOWN, and the next agent stops', async () => {
    const { net, failure, call, started, until, tookMs } = await working(WORK.once)
    const last = started[1]?.ctx.signal as AbortSignal
    await net.crash('b')
    expect((await failure(call)).code).toBe('OUTCOME_UNKNOWN')
    expect(tookMs()).toBeLessThan(10_000)
    await until(() => last.aborted, 'the signal of the next agent')
    expect(last.reason).toMatchObject({ code: 'CALLER_GONE' })
  })

  it('and back in another life, it says that it does not know', async () => {
    const scene = await working(WORK.once)
    const { net, failure, call, a } = scene
    const bootstrap = [a.addresses[0] as string]
    await net.crash('b')
    await net.advance(50)
    await net.until(net.launch('b', undefined, { bootstrap }))
    expect((await failure(call)).code).toBe('OUTCOME_UNKNOWN')
    expect(scene.of('a', 'call.outcome').map(({ state }) => state)).not.toContain('unseen')
  })
})

describe('the same work by two paths', () => {
  it('is started once, and answered by the path that is there', async () => {
    // a – b – d and a – c – d; a and d are apart.
    const gate = gated('d')
    const scene = await line('abcd', {
      serve: { b: to('d'), c: to('d'), d: gate.serve },
      also: [
        ['a', 'c'],
        ['b', 'd'],
      ],
    })
    const { net, a, started, until, of } = scene
    const call = a.request(WORK.none, { n: 1 }, { timeoutMs: 30_000 })
    await until(() => started.some(({ by }) => by === 'd'), 'the last handler')
    const first = started[0]?.by as string
    await net.crash(first)
    await until(() => of('d', 'dedup.joined').length > 0, 'the second attempt')
    gate.open()
    const given = await net.until(call)
    expect(given).toMatchObject({ agent: 'd', output: { by: 'd', n: 1 } })
    expect(started.map(({ by }) => by)).toEqual([first, 'd', first === 'b' ? 'c' : 'b'])
    await net.advance('5s')
    expect(started[1]?.ctx.signal.aborted).toBe(false)
  })

  it('a copy of a forwarded frame joins, and is answered once to the caller', async () => {
    let copies = 0
    const { net, a, started } = await line('abc', {
      serve: {
        b: to('c'),
        c: async ({ n }) => {
          await net.sleep('1s')
          return { by: 'c', n }
        },
      },
      sendFilter: (agentId) => (_to, frame, deliver) => {
        deliver(frame)
        if (agentId !== 'b') return
        copies++
        deliver(frame)
      },
    })
    expect(await net.until(a.call(WORK.once, { n: 1 }, { agent: 'b' }))).toEqual({ by: 'c', n: 1 })
    await net.advance('5s')
    expect(copies).toBeGreaterThan(0)
    expect(started.map(({ by }) => by)).toEqual(['b', 'c'])
  })
})

it('nothing is left of calls whose agents were all lost: the places are free when their time is over', async () => {
  const { net, a, failure, until, started } = await line('abc', {
    serve: { b: to('c'), c: forever },
    tuning: { waysKept: 2 },
  })
  for (let n = 0; n < 4; n++) {
    const before = started.filter(({ by }) => by === 'c').length
    const call = a.call(WORK.none, { n }, { agent: 'b', timeoutMs: 1000 })
    call.catch(() => undefined)
    await until(() => started.filter(({ by }) => by === 'c').length > before, 'the last handler')
    net.faults.cut(net.peerId('b'), net.peerId('c'), { afterBytes: 0 })
    await failure(call)
    await net.advance('5s')
  }
})
