import { capability } from '@hermes-peer/protocol'
import type { TestNetwork } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import { count, counting, countOnce, readAll, scene, ticking } from './scene.ts'

type Piece = { n: number }
const upTo = (most: number) => Array.from({ length: most }, (_, at) => at + 1)

describe('a streaming call', () => {
  it('gives every piece in its order, then the result', async () => {
    const { net, desk, handled, events } = await scene({ counter: counting })
    const stream = desk.stream(count, { to: 500 })
    const { pieces, error } = await net.until(readAll<Piece>(stream))
    expect(error).toBeUndefined()
    expect(pieces.map(({ n }) => n)).toEqual(upTo(500))
    expect(await stream.result).toEqual({ total: 500 })
    expect(handled).toEqual([{ by: 'counter', yielded: 500, aborted: undefined, cleaned: true }])
    await net.advance('1s')
    expect(events.of('counter', 'stream.ended')).toMatchObject([{ code: 'OK', sent: 500, received: 0 }])
    expect(events.of('desk', 'stream.ended')).toMatchObject([{ code: 'OK', sent: 0, received: 500 }])
    expect(desk.balance()).toMatchObject({ calls: 1, succeeded: 1, inFlight: 0 })
  })

  it('of nothing has a result too', async () => {
    const { net, desk } = await scene({ counter: counting })
    const stream = desk.stream(count, { to: 0 })
    expect(await net.until(readAll(stream))).toEqual({ pieces: [], error: undefined })
    expect(await stream.result).toEqual({ total: 0 })
  })

  it('hands pieces over as they are made, not at the end', async () => {
    const { net, desk } = await scene({ counter: ticking(1000) })
    const iterator = desk.stream(count, { to: 3 })[Symbol.asyncIterator]()
    const first = iterator.next()
    await net.advance('1100ms')
    expect(await first).toEqual({ done: false, value: { n: 1 } })
  })

  it('tells a declared error of its handler, after what came before it, on both sides', async () => {
    const { net, desk, events } = await scene({
      counter: () =>
        async function* (_, context) {
          yield { n: 1 }
          throw context.error('TOO_FAR', { most: 5 })
        },
    })
    const stream = desk.stream(count, { to: 9 })
    const { pieces, error } = await net.until(readAll<Piece>(stream))
    expect(pieces).toEqual([{ n: 1 }])
    expect(error).toMatchObject({ declared: { name: 'TOO_FAR', data: { most: 5 } } })
    await expect(stream.result).rejects.toBe(error)
    expect(events.of('counter', 'handler.ended')).toMatchObject([{ code: 'TOO_FAR' }])
  })

  it('never tells more of an error than that the handler failed', async () => {
    const { net, desk } = await scene({
      counter: () =>
        // biome-ignore lint/correctness/useYield: it fails before
        async function* () {
          throw new Error('password=secret')
        },
    })
    const { error } = await net.until(readAll(desk.stream(count, { to: 1 }, { timeoutMs: 3000 })))
    expect(error?.code).toBe('HANDLER_ERROR')
    expect(error?.message).not.toContain('secret')
  })

  it.each([
    ['a piece that the contract does not allow', { n: 'one' }],
    ['a piece that is no data', { n: 1n }],
    ['a piece over 64 KiB', { n: 1, pad: 'x'.repeat(64 * 1024) }],
  ])('ends with INVALID_RESULT at %s', async (_, piece) => {
    const { net, desk, handled } = await scene({
      counter: () =>
        async function* () {
          yield { n: 1 }
          yield piece as never
          yield { n: 3 }
          return { total: 3 }
        },
    })
    const { pieces, error } = await net.until(readAll(desk.stream(count, { to: 3 })))
    expect(pieces).toEqual([{ n: 1 }])
    expect(error?.code).toBe('INVALID_RESULT')
    expect(handled).toMatchObject([{ yielded: 2, cleaned: true }])
  })

  it('ends with INVALID_RESULT at a result that the contract does not allow', async () => {
    const { net, desk } = await scene({
      counter: () =>
        async function* () {
          yield { n: 1 }
          return { total: 'many' } as never
        },
    })
    expect((await net.until(readAll(desk.stream(count, { to: 1 })))).error?.code).toBe('INVALID_RESULT')
  })

  it('inherits the trace and the deadline of the call that it is made in', async () => {
    const relay = capability('relay', { description: 'x', input: z.null(), output: z.number(), effects: 'none' })
    let pieces = 0
    const others = {
      relay: (peer: Peer) =>
        peer.provide(relay, async () => {
          for await (const _ of peer.stream(count, { to: 100 })) pieces++
          return pieces
        }),
    }
    const { net, desk, events } = await scene({ counter: ticking(400) }, { others })
    const call = desk.call(relay, null, { timeoutMs: 3000 }).catch((error: unknown) => error)
    expect(await net.until(call)).toMatchObject({ code: 'TIMEOUT' })
    await net.advance('1s')
    expect(pieces).toBeLessThan(10)
    const [asked] = events.of('desk', 'call.started')
    expect(events.of('counter', 'handler.started')).toMatchObject([{ traceId: asked?.traceId }])
    expect(events.of('counter', 'handler.ended')).toHaveLength(1)
  })

  it('queues at a provider that is full, and frees its place', async () => {
    const one = capability('one_at_a_time', {
      description: 'One.',
      input: z.null(),
      output: z.null(),
      yields: z.number(),
      effects: 'none',
      constraints: { maxConcurrency: 1 },
    })
    let running = 0
    let most = 0
    const single = (peer: Peer, net: TestNetwork) =>
      peer.provide(one, async function* () {
        most = Math.max(most, ++running)
        yield 1
        await net.sleep('1s')
        running--
        return null
      })
    const { net, desk, events } = await scene({}, { others: { single } })
    const streams = [1, 2, 3].map(() => readAll(desk.stream(one, null)))
    expect(await net.until(Promise.all(streams))).toEqual(streams.map(() => ({ pieces: [1], error: undefined })))
    expect(most).toBe(1)
    expect(events.of('single', 'handler.queued')).toHaveLength(2)
  })
})

describe('F-18 handler keeps running after the caller is gone', () => {
  it.each([
    ['break', 'CANCELLED'],
    ['cancel', 'CANCELLED'],
    ['signal', 'CANCELLED'],
    ['deadline', 'TIMEOUT'],
    ['crash', 'CALLER_GONE'],
    ['stop', 'CALLER_GONE'],
  ])('%s of the reader ends the generator and fires its signal', async (how, code) => {
    const { net, desk, handled, events } = await scene({ counter: ticking(100) })
    const controller = new AbortController()
    const stream = desk.stream(
      count,
      { to: 1e5 },
      { signal: controller.signal, ...(how === 'deadline' ? { timeoutMs: 1000 } : {}) },
    )
    let seen = 0
    const reading = (async () => {
      for await (const _ of stream) {
        seen++
        if (how === 'break' && seen === 3) break
      }
    })().catch((error: unknown) => error)
    await net.advance('550ms')
    if (how === 'cancel') stream.cancel('enough')
    if (how === 'signal') controller.abort()
    if (how === 'crash') await net.crash('desk')
    if (how === 'stop') void desk.stop()
    await net.advance('1s')
    expect(handled).toMatchObject([{ aborted: code, cleaned: true }])
    expect(seen).toBeGreaterThanOrEqual(3)
    await net.advance('4s')
    const [ended] = events.of('counter', 'stream.ended')
    expect(ended).toBeDefined()
    if (how === 'crash') return
    const told = await reading
    const expected = { break: undefined, deadline: 'TIMEOUT', stop: 'STOPPED' }[how as 'break']
    expect((told as { code?: string } | undefined)?.code).toBe(
      how in { break: 1 } ? undefined : (expected ?? 'CANCELLED'),
    )
    if (how !== 'stop') expect(desk.balance()).toMatchObject({ calls: 1, failed: 1, inFlight: 0 })
  })

  it('a generator that does not listen keeps its place until it yields, and nothing is sent any more', async () => {
    const { net, desk, handled, events } = await scene({
      counter: (net) =>
        async function* () {
          yield { n: 1 }
          await net.sleep('20s')
          yield { n: 2 }
          return { total: 2 }
        },
    })
    const stream = desk.stream(count, { to: 1 })
    for await (const _ of { [Symbol.asyncIterator]: () => untilMoves(net, stream) }) break
    await net.advance('5s')
    expect(handled).toMatchObject([{ aborted: 'CANCELLED', cleaned: false }])
    await net.advance('20s')
    expect(handled).toMatchObject([{ cleaned: true }])
    expect(events.of('counter', 'stream.ended')).toMatchObject([{ code: 'CANCELLED', sent: 1 }])
  })
})

/** An iterator that lets virtual time pass while it is asked. */
function untilMoves<T>(
  net: { until<R>(goal: PromiseLike<R>): Promise<R> },
  stream: AsyncIterable<T>,
): AsyncIterator<T> {
  const iterator = stream[Symbol.asyncIterator]()
  return { next: () => net.until(iterator.next()), return: () => iterator.return?.() as Promise<IteratorResult<T>> }
}

describe('F-19 clean end mistaken for completion', () => {
  it.each([
    ['crash', 'STREAM_BROKEN'],
    // It still tells so itself. With time to drain it would come to its end.
    ['stop', 'CALLER_GONE'],
    ['cut', 'STREAM_BROKEN'],
    ['partition', 'STREAM_BROKEN'],
  ])('%s of the writer is %s, with what came, never success', async (how, code) => {
    const { net, desk, events } = await scene({ counter: ticking(100) })
    const stream = desk.stream(count, { to: 100 })
    const reading = readAll<Piece>(stream)
    await net.advance('1050ms')
    if (how === 'crash') await net.crash('counter')
    if (how === 'stop') void (await net.peer('counter')).stop({ drainMs: 0 })
    if (how === 'cut') net.faults.cut(net.peerId('desk'), net.peerId('counter'), { afterBytes: 0 })
    if (how === 'partition') net.faults.partition([[net.peerId('desk')], [net.peerId('counter')]])
    const { pieces, error } = await net.until(reading)
    expect(error?.code).toBe(code)
    expect(pieces.map(({ n }) => n)).toEqual(upTo(pieces.length))
    expect(pieces.length).toBeGreaterThanOrEqual(9)
    await expect(stream.result).rejects.toBe(error)
    expect(events.of('desk', 'stream.ended')).toHaveLength(1)
    expect(desk.balance()).toMatchObject({ succeeded: 0, failed: 1, inFlight: 0 })
  })

  it('silence of the handler between two pieces ends it as TIMEOUT after its 30 s; before the first piece it may think', async () => {
    const { net, desk, handled } = await scene({
      counter: (net) =>
        async function* (_, { signal }) {
          await net.sleep('60s', { signal })
          yield { n: 1 }
          await net.sleep('29s', { signal })
          yield { n: 2 }
          await net.sleep('40s', { signal })
          yield { n: 3 }
          return { total: 3 }
        },
    })
    const { pieces, error } = await net.until(readAll<Piece>(desk.stream(count, { to: 3 })))
    expect(pieces).toEqual([{ n: 1 }, { n: 2 }])
    expect(error).toMatchObject({ code: 'TIMEOUT', remote: true })
    expect(handled).toMatchObject([{ aborted: 'TIMEOUT', cleaned: true }])
  })

  it('the budget of five minutes ends it on both sides', async () => {
    const { net, desk, handled, events } = await scene({ counter: ticking(10_000) })
    const { pieces, error } = await net.until(readAll(desk.stream(count, { to: 1000 })))
    expect(error?.code).toBe('TIMEOUT')
    expect(pieces).toHaveLength(29)
    await net.advance('1s')
    expect(handled).toMatchObject([{ aborted: 'TIMEOUT', cleaned: true }])
    expect(events.of('counter', 'handler.ended')).toMatchObject([{ code: 'TIMEOUT' }])
  })
})

describe('failover of a stream', () => {
  it('goes to another candidate before the first piece was read', async () => {
    const slow = (net: { sleep(time: string): Promise<void> }) =>
      async function* ({ to }: { to: number }) {
        await net.sleep('5s')
        yield { n: 1 }
        return { total: to }
      }
    const { net, desk, handled } = await scene({ a: slow as never, b: slow as never })
    const reading = readAll(desk.stream(count, { to: 1 }))
    await net.advance('1s')
    await net.crash(handled[0]?.by as string)
    expect(await net.until(reading)).toEqual({ pieces: [{ n: 1 }], error: undefined })
    expect(handled.map(({ by }) => by).sort()).toEqual(['a', 'b'])
    expect(desk.balance()).toMatchObject({ succeeded: 1, failovers: 1 })
  })

  it('does not after the first piece', async () => {
    const { net, desk, handled } = await scene({ a: ticking(500), b: ticking(500) })
    const reading = readAll(desk.stream(count, { to: 10 }))
    await net.advance('1200ms')
    await net.crash(handled[0]?.by as string)
    expect((await net.until(reading)).error?.code).toBe('STREAM_BROKEN')
    expect(handled).toHaveLength(1)
  })

  it('does not where the effects are once', async () => {
    const { net, desk, handled } = await scene({ a: ticking(5000), b: ticking(5000) })
    const reading = readAll(desk.stream(countOnce, { to: 1 }))
    await net.advance('1s')
    await net.crash(handled[0]?.by as string)
    expect((await net.until(reading)).error?.code).toBe('STREAM_BROKEN')
    expect(handled).toHaveLength(1)
  })

  it('asks the same candidate again after BUSY, whatever the effects are: nothing was started', async () => {
    const { net, desk, handled, events } = await scene(
      { a: ticking(1000) },
      { tuning: { streamsPerPeer: 1 }, deskTuning: {} },
    )
    const others = [1, 2].map(() => desk.stream(countOnce, { to: 1000 }))
    await net.advance('50ms')
    const reading = readAll(desk.stream(countOnce, { to: 2 }))
    await net.advance('50ms')
    expect(events.of('a', 'stream.refused')).toMatchObject([{ code: 'BUSY', agentId: 'desk' }])
    for (const other of others) other.cancel()
    expect(await net.until(reading)).toEqual({ pieces: [{ n: 1 }, { n: 2 }], error: undefined })
    expect(handled).toHaveLength(3)
  })
})

describe('the wrong way', () => {
  it('is refused by the caller: stream for a plain contract, call for one with yields', async () => {
    const { desk } = await scene({ counter: counting })
    const plain = capability('plain', { description: 'x', input: z.null(), output: z.null() })
    expect(() => desk.stream(plain as never, null as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_CONTRACT' }),
    )
    await expect(desk.call(count, { to: 1 })).rejects.toMatchObject({ code: 'INVALID_CONTRACT', hint: 'Use stream().' })
  })

  it('is refused by the provider, as when contracts differ', async () => {
    const { net, desk } = await scene({ counter: counting })
    const call = net.until(desk.callDynamic('count', { to: 1 }))
    await expect(call).rejects.toMatchObject({ code: 'STREAM_UNSUPPORTED', remote: true })
  })

  it('is refused by provide: a handler that is no async generator, and a generator without yields', async () => {
    const { desk } = await scene({})
    const plain = capability('plain', { description: 'x', input: z.null(), output: z.null() })
    const refusal = (names: RegExp) =>
      expect.objectContaining({ code: 'INVALID_CONTRACT', message: expect.stringMatching(names) })
    expect(() => desk.provide(count, (async () => ({ total: 1 })) as never)).toThrow(
      refusal(/must be an async generator/),
    )
    expect(() => desk.provide(count, (() => ({ total: 1 })) as never)).toThrow(refusal(/must be an async generator/))
    // biome-ignore lint/correctness/useYield: only its kind counts
    const sync = function* () {
      return { total: 1 }
    }
    expect(() => desk.provide(count, sync as never)).toThrow(refusal(/must be an async generator/))
    // biome-ignore lint/correctness/useYield: only its kind counts
    const async = async function* () {
      return null
    }
    expect(() => desk.provide(plain, async as never)).toThrow(
      refusal(/is an async generator, but its contract has no yields/),
    )
    expect(() => desk.provide(plain, sync as never)).toThrow(refusal(/generator that is not async/))
  })

  it('an input that the contract refuses ends the stream before anything is sent', async () => {
    const { net, desk, events } = await scene({ counter: counting })
    const { error } = await net.until(readAll(desk.stream(count, { to: 'ten' } as never)))
    expect(error?.code).toBe('VALIDATION_ERROR')
    expect(events.of('desk', 'stream.opened')).toEqual([])
  })
})
