import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { count, counting, readAll, scene } from './scene.ts'

const KiB = 1024
const pad = 'x'.repeat(1000)
/** A buffer small enough to be filled often. */
const small = { streamBufferBytes: 2200 * KiB }

describe('F-20 slow reader: memory growth or silent loss', () => {
  it('a reader that does not ask makes the writer wait, and loses nothing when it goes on', async () => {
    const { net, desk, handled, events } = await scene({ counter: counting }, { tuning: small })
    const stream = desk.stream(count, { to: 5000, pad })
    const iterator = stream[Symbol.asyncIterator]()
    expect(await net.until(iterator.next())).toMatchObject({ value: { n: 1 } })
    await net.advance('20s')
    const held = handled[0]?.yielded as number
    // What waits here, what is on its way, and one write at the other side.
    const most = small.streamBufferBytes * DEFAULTS.streamAbortAt + 256 * KiB + DEFAULTS.streamWriteBytes
    expect(held * pad.length).toBeLessThan(most)
    expect(held * pad.length).toBeGreaterThan(small.streamBufferBytes * DEFAULTS.streamPauseAt - 64 * KiB)
    expect(events.of('desk', 'stream.flow')).toMatchObject([{ side: 'reader', paused: true }])
    expect(events.of('counter', 'stream.flow')).toMatchObject([{ side: 'writer', paused: true }])
    await net.advance('10s')
    expect(handled[0]?.yielded).toBe(held)
    let last = 1
    const rest = (async () => {
      for (let step = await iterator.next(); !step.done; step = await iterator.next()) {
        expect(step.value.n).toBe(++last)
      }
    })()
    await net.until(rest)
    expect(last).toBe(5000)
    expect(await stream.result).toEqual({ total: 5000 })
    const flow = events.of('desk', 'stream.flow')
    expect(flow.map(({ paused }) => paused)).toEqual(flow.map((_, at) => at % 2 === 0))
    expect(flow.length).toBeGreaterThan(1)
    for (const { waiting, paused } of flow) {
      if (paused) expect(waiting).toBeGreaterThanOrEqual(small.streamBufferBytes * DEFAULTS.streamPauseAt)
      else expect(waiting).toBeLessThan(small.streamBufferBytes * DEFAULTS.streamResumeAt)
    }
  })

  it('a reader that stands still holds up neither another stream of the same link nor its calls', async () => {
    const { net, desk } = await scene({ counter: counting }, { tuning: small })
    const still = desk.stream(count, { to: 5000, pad })[Symbol.asyncIterator]()
    await net.until(still.next())
    await net.advance('2s')
    const before = net.timeline.now()
    expect((await net.until(readAll(desk.stream(count, { to: 2000, pad })))).pieces).toHaveLength(2000)
    await net.until(desk.callDynamic('count', {}).catch(() => undefined))
    expect(net.timeline.now() - before).toBeLessThan(5000)
    await still.return?.()
  })

  it('a writer that has more to say gets the budget, no more: then both sides know', async () => {
    const { net, desk, handled } = await scene({ counter: counting }, { tuning: small })
    const stream = desk.stream(count, { to: 1e6, pad }, { timeoutMs: 20_000 })
    const iterator = stream[Symbol.asyncIterator]()
    await net.until(iterator.next())
    await net.advance('21s')
    expect(handled).toMatchObject([{ aborted: 'TIMEOUT', cleaned: true }])
    await expect(stream.result).rejects.toMatchObject({ code: 'TIMEOUT' })
    await expect(iterator.next()).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(await iterator.next()).toEqual({ done: true, value: undefined })
  })

  it('a peer that takes nothing off the wire for 10 s loses the stream; the handler is told', async () => {
    const { net, desk, handled, events } = await scene({ counter: counting })
    const stream = desk.stream(count, { to: 1e6, pad })
    const iterator = stream[Symbol.asyncIterator]()
    await net.until(iterator.next())
    const release = net.faults.stall(net.peerId('desk'), { forMs: 60_000 })
    // It asks for more; what it asks for stays in its transport.
    const reading = (async () => {
      for (let step = await iterator.next(); !step.done; step = await iterator.next());
    })().catch((error: unknown) => error)
    await net.advance('13s')
    expect(handled).toMatchObject([{ aborted: 'CALLER_GONE', cleaned: true }])
    expect(events.of('counter', 'stream.ended')).toMatchObject([{ code: 'CALLER_GONE' }])
    release()
    await net.advance('5s')
    expect(await net.until(reading)).toMatchObject({ code: 'STREAM_BROKEN' })
  })
})

describe('F-22 stream slots leak or the cap is hit silently', () => {
  it('calls over the bound wait for a place, and every place is given back, however they end', async () => {
    const { net, desk, events } = await scene({ counter: counting }, { tuning: { streamsPerPeer: 4 } })
    const ends = Array.from({ length: 60 }, (_, at) => {
      const stream = desk.stream(count, { to: at % 4 === 1 ? 2e6 : 50 }, { timeoutMs: 60_000 })
      if (at % 4 !== 2) return readAll(stream)
      // Cancelled, some before they have a place.
      if (at % 8 === 2) stream.cancel()
      return (async () => {
        for await (const _ of stream) break
      })().catch(() => undefined)
    })
    const done = (await net.until(Promise.all(ends))) as (
      | { error?: { code: string; declared?: { name: string } } }
      | undefined
    )[]
    const errors = done.flatMap((one) => (one?.error ? [one.error.declared?.name ?? one.error.code] : []))
    expect(errors).toEqual(Array.from({ length: 15 }, () => 'TOO_FAR'))
    await net.advance('15s')
    for (const side of ['desk', 'counter']) {
      let open = 0
      let most = 0
      const all = [...events.of(side, 'stream.opened'), ...events.of(side, 'stream.ended')].sort((a, b) => a.at - b.at)
      for (const { type } of all) {
        open += type === 'stream.opened' ? 1 : -1
        most = Math.max(most, open)
      }
      expect(open).toBe(0)
      expect(most).toBeLessThanOrEqual(8)
    }
    expect(desk.balance()).toMatchObject({ calls: 60, inFlight: 0 })
    expect((await net.until(readAll(desk.stream(count, { to: 3 })))).pieces).toHaveLength(3)
  })

  it('a peer that is full says BUSY, which is retried: nothing ends by a reset without a word', async () => {
    const { net, desk, events } = await scene({ counter: counting }, { tuning: { streamsPerPeer: 1 }, deskTuning: {} })
    const first = desk.stream(count, { to: 5000, pad })[Symbol.asyncIterator]()
    await net.until(first.next())
    const other = desk.stream(count, { to: 5000, pad })[Symbol.asyncIterator]()
    await net.until(other.next())
    const second = readAll(desk.stream(count, { to: 1 }))
    await net.advance('500ms')
    expect(events.of('counter', 'stream.refused')).toMatchObject([{ code: 'BUSY' }])
    await first.return?.()
    expect(await net.until(second)).toEqual({ pieces: [{ n: 1 }], error: undefined })
  })

  it('two hundred one after the other leave nothing open', async () => {
    const { net, desk, events } = await scene({ counter: counting })
    for (let i = 0; i < 200; i++) await net.until(readAll(desk.stream(count, { to: 1 })))
    await net.advance('15s')
    for (const side of ['desk', 'counter']) {
      expect(events.of(side, 'stream.opened')).toHaveLength(200)
      expect(events.of(side, 'stream.ended').map(({ code }) => code)).toEqual(Array.from({ length: 200 }, () => 'OK'))
    }
  })
})
