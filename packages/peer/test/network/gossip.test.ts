import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createGossipScore } from '../../src/network/libp2p/gossip-score.ts'
import type { Network, Verdict } from '../../src/network/network.ts'
import { until } from '../waiting.ts'
import { open, serveEcho, started } from './support.ts'

const TOPIC = 'hermes/test/topic/news'

/** Publishes fresh messages until one has gone to somebody: subscriptions take a moment to arrive. */
async function publish(on: Network, topic: string, text: string): Promise<void> {
  await untilSent(async () => (await on.publish(topic, Buffer.from(`${text}:${randomBytes(4).toString('hex')}`))) > 0)
}

async function untilSent(send: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 15_000
  while (!(await send())) {
    if (performance.now() > end) throw new Error('nobody was there to send to')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** A line a – b – c in which b judges by the first word, and what b and c got. */
async function line(): Promise<{ a: Network; b: Network; atB: string[]; fromAtB: string[]; atC: string[] }> {
  const [a, b, c] = await Promise.all([started(), started(), started()])
  const [atB, fromAtB, atC]: [string[], string[], string[]] = [[], [], []]
  for (const node of [a, b, c]) serveEcho(node)
  b.subscribe(TOPIC, ({ from, data }) => {
    const text = Buffer.from(data).toString()
    atB.push(text)
    fromAtB.push(from)
    return text.split(':')[0] as Verdict
  })
  c.subscribe(TOPIC, ({ data }) => {
    atC.push(Buffer.from(data).toString())
    return 'accept'
  })
  await Promise.all([open(a, b), open(b, c)])
  await publish(b, TOPIC, 'accept:b to c')
  await until(() => atC.length > 0, 'the way from b to c')
  atC.length = 0
  return { a, b, atB, fromAtB, atC }
}

describe('gossip', () => {
  it('lets through what is accepted, and neither what is ignored nor what is rejected', async () => {
    const { a, atB, fromAtB, atC } = await line()
    for (const verdict of ['ignore', 'reject', 'accept']) await publish(a, TOPIC, verdict)
    await until(() => atC.length > 0, 'the accepted message at c')
    expect(atB.map((text) => text.split(':')[0])).toEqual(expect.arrayContaining(['ignore', 'reject', 'accept']))
    expect(new Set(fromAtB)).toEqual(new Set([a.peerId]))
    // The accepted one was sent last on the same streams, so the other two cannot still be on their way.
    expect(atC.map((text) => text.split(':')[0])).toEqual(['accept'])
  })

  it('reaches 16 neighbours that share an address, all connecting at the same time', async () => {
    const hub = await started()
    serveEcho(hub)
    // Of other networks, so that they have only the hub in common, and no DHT to join.
    const others = await Promise.all(
      Array.from({ length: 16 }, (_, index) => started({ networkName: `other-${index}` })),
    )
    const got = new Set<string>()
    for (const other of others) {
      other.subscribe(TOPIC, () => {
        got.add(other.peerId)
        return 'accept'
      })
    }
    await Promise.all(others.map((other) => open(other, hub)))
    let number = 0
    await untilSent(async () => (await hub.publish(TOPIC, Buffer.from(`all ${++number}`))) === 16)
    await until(() => got.size === 16, 'the message at all of them')
    // Where neighbours of one address are held against them, a hub stops listening to them within a heartbeat.
    const heard = new Set<string>()
    hub.subscribe(TOPIC, ({ from }) => {
      heard.add(from)
      return 'accept'
    })
    await untilSent(async () => {
      for (const other of others) await other.publish(TOPIC, randomBytes(8))
      return heard.size === 16
    })
  })

  it('stops listening to a neighbour whose messages are rejected again and again', async () => {
    const { a, atB } = await line()
    let sent = 0
    await until(() => {
      sent += 1
      void a.publish(TOPIC, Buffer.from(`reject:${sent}`))
      return sent > 30 && atB.length < sent - 10
    }, 'the neighbour to be ignored')
  })

  it('says to how many neighbours a message went, none included, and takes the same one twice', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    expect(await a.publish(TOPIC, Buffer.from('nobody'))).toBe(0)
    const got: string[] = []
    b.subscribe(TOPIC, ({ data }) => {
      got.push(Buffer.from(data).toString())
      return 'accept'
    })
    await open(a, b)
    let number = 0
    await untilSent(async () => (await a.publish(TOPIC, Buffer.from(`try ${++number}`))) === 1)
    await until(() => got.length === 1, 'the message')
    expect(await a.publish(TOPIC, Buffer.from(`try ${number}`))).toBe(0)
  })

  it('bounds messages by topic, when sending and when receiving', async () => {
    const [a, b] = await Promise.all([
      started({ topics: { [TOPIC]: 200_000 } }),
      started({ topics: { [TOPIC]: 1000 } }),
    ])
    serveEcho(b)
    const got: number[] = []
    b.subscribe(TOPIC, ({ data }) => {
      got.push(data.length)
      return 'accept'
    })
    await expect(a.publish(TOPIC, randomBytes(200_001))).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      details: { limit: 200_000 },
    })
    await expect(a.publish('hermes/test/other', randomBytes(65_537))).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
    await open(a, b)
    await untilSent(async () => (await a.publish(TOPIC, randomBytes(100_000))) > 0)
    await untilSent(async () => (await a.publish(TOPIC, randomBytes(1000))) > 0)
    await until(() => got.length > 0, 'the small message')
    expect(got).toEqual([1000])
  })

  it('serves several subscribers of a topic, the strictest verdict counting, until the last has left', async () => {
    const { a, b, atB, atC } = await line()
    const leave = b.subscribe(TOPIC, () => 'ignore')
    await publish(a, TOPIC, 'accept')
    await until(() => atB.length > 0, 'the first message at b')
    leave()
    leave()
    await publish(a, TOPIC, 'accept')
    await until(() => atC.length > 0, 'the second message at c')
    expect(atC).toHaveLength(1)
  })

  it('blames nobody when a receiver throws, and goes on', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const got: string[] = []
    b.subscribe(TOPIC, ({ data }) => {
      got.push(Buffer.from(data).toString())
      if (got.length === 1) throw new Error('mistake of a receiver')
      return 'accept'
    })
    await open(a, b)
    await publish(a, TOPIC, 'first')
    await publish(a, TOPIC, 'second')
    await until(() => got.length === 2, 'both messages')
  })

  it('takes no part in topics of other networks', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const got: string[] = []
    const receive = ({ data }: { data: Uint8Array }): Verdict => {
      got.push(Buffer.from(data).toString())
      return 'accept'
    }
    b.subscribe('hermes/elsewhere/topic/x', receive)
    b.subscribe(TOPIC, receive)
    await open(a, b)
    await publish(a, TOPIC, 'here')
    await until(() => got.length === 1, 'the message of this network')
    expect(await a.publish('hermes/elsewhere/topic/x', Buffer.from('there'))).toBe(0)
  })
})

describe('the score of a gossip neighbour', () => {
  it('grows worse by the square of its rejected messages, and is forgiven with time', () => {
    let now = 0
    const score = createGossipScore(() => now)
    expect(score.of('p')).toBe(0)
    for (let count = 0; count < 4; count += 1) score.rejected('p')
    expect(score.of('p')).toBe(-16)
    for (let count = 0; count < 5; count += 1) score.rejected('p')
    expect(score.of('p')).toBe(-81)
    expect(score.of('q')).toBe(0)
    now = 60_000
    expect(score.of('p')).toBeCloseTo(-20.25)
    now = 20 * 60_000
    expect(score.of('p')).toBe(0)
  })
})
