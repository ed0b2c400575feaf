import { capability } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import { count, counting, scene } from './scene.ts'

const KiB = 1024
const pad = 'x'.repeat(1000)
const echo = capability('echo', { description: 'Echoes.', input: z.number(), output: z.number(), effects: 'none' })
const pages = capability('pages', {
  description: 'Yields so many pages of a book.',
  input: z.object({ book: z.string(), count: z.number() }),
  output: z.number(),
  yields: z.string(),
  effects: 'none',
})
const ask = capability('ask', { description: 'Asks back.', input: z.number(), output: z.number(), effects: 'none' })

describe('F-14 control traffic stuck behind data', () => {
  it('cancel, calls and heartbeats pass a stream whose reader stands still, within a second', async () => {
    const { net, desk, handled, events } = await scene(
      { counter: counting },
      {
        tuning: { streamBufferBytes: 2200 * KiB },
        others: { other: (peer) => peer.provide(echo, (n) => n) },
      },
    )
    const still = desk.stream(count, { to: 5000, pad })
    const iterator = still[Symbol.asyncIterator]()
    await net.until(iterator.next())
    await net.advance('2s')
    expect(events.of('counter', 'stream.flow').at(-1)).toMatchObject({ side: 'writer', paused: true })

    const before = net.timeline.now()
    expect(await net.until(desk.manifest('counter'))).toMatchObject({ agent_id: 'counter' })
    still.cancel()
    await net.advance('900ms')
    expect(net.timeline.now() - before).toBeLessThan(1000)
    expect(handled).toMatchObject([{ aborted: 'CANCELLED', cleaned: true }])
    // Receipts and heartbeats go on as well: neither side has given the other up.
    await net.advance('60s')
    expect(events.of('desk', 'link.down')).toEqual([])
    expect(events.of('counter', 'link.down')).toEqual([])
  })

  it('a reader that goes on is heard at once, though the writer’s whole buffer waits', async () => {
    const { net, desk, events } = await scene({ counter: counting }, { tuning: { streamBufferBytes: 2200 * KiB } })
    const stream = desk.stream(count, { to: 5000, pad })
    const iterator = stream[Symbol.asyncIterator]()
    await net.until(iterator.next())
    await net.advance('20s')
    const at = net.timeline.now()
    const read = (async () => {
      for (let step = await iterator.next(); !step.done; step = await iterator.next());
    })()
    await net.until(read)
    const resumed = events.of('counter', 'stream.flow').find((event) => !event.paused && event.at >= at)
    expect(resumed).toBeDefined()
    expect(net.timeline.now() - at).toBeLessThan(1000)
  })

  it('a reader whose input was large can make its writer wait too, and is heard when it gives up', async () => {
    let made = 0
    let aborted: string | undefined
    const provide = (peer: Peer): unknown =>
      peer.provide(pages, async function* ({ book, count }, { signal }) {
        signal.addEventListener('abort', () => {
          aborted = signal.reason.code
        })
        for (made = 0; made < count; made++) yield pad
        return book.length
      })
    const { net, desk, events } = await scene(
      {},
      { tuning: { streamBufferBytes: 2200 * KiB }, others: { library: provide } },
    )
    const stream = desk.stream(pages, { book: '书'.repeat(600_000), count: 8000 })
    const iterator = stream[Symbol.asyncIterator]()
    expect(await net.until(iterator.next())).toMatchObject({ value: pad })
    await net.advance('5s')
    const waiting = made
    await net.advance('5s')
    expect(made).toBe(waiting)
    expect(waiting).toBeLessThan(3000)
    expect(events.of('library', 'stream.flow')).toMatchObject([{ side: 'writer', paused: true }])
    for (let read = 1; read < 4000; read++) await net.until(iterator.next())
    stream.cancel()
    await net.advance('1s')
    expect(aborted).toBe('CANCELLED')
  })

  it('a handler that calls its caller back is answered while a thousand calls wait at both', async () => {
    let answered: number | undefined
    const provide = (peer: Peer): unknown =>
      peer
        .provide(echo, (n) => n)
        .provide(ask, async (n) => {
          answered = await peer.call(echo, n, { agent: 'desk', timeoutMs: 20_000 })
          return answered
        })
    const { net, desk } = await scene({}, { others: { asked: provide } })
    desk.provide(echo, (n) => n)
    await net.advance('12s')
    const before = net.timeline.now()
    const all = Array.from({ length: 1000 }, (_, n) => desk.call(echo, n, { agent: 'asked', timeoutMs: 30_000 }))
    const asking = desk.call(ask, 7, { agent: 'asked', timeoutMs: 30_000 })
    expect(await net.until(asking)).toBe(7)
    expect(answered).toBe(7)
    expect(net.timeline.now() - before).toBeLessThan(1000)
    expect((await net.until(Promise.all(all))).reduce((sum, n) => sum + n, 0)).toBe((999 * 1000) / 2)
  })
})
