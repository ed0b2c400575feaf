import { capability } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import { count, counting, scene } from './scene.ts'

const KiB = 1024
const pad = 'x'.repeat(1000)
const echo = capability('echo', { description: 'Echoes.', input: z.number(), output: z.number(), effects: 'none' })
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
