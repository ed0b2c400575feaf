import { capability, type Peer, type ReceivedEvent, type WatchChange } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { until } from '../../packages/peer/test/waiting.ts'
import { createTeam } from './support/team.ts'

const work = capability('work', {
  description: 'Works.',
  input: z.null(),
  output: z.null(),
  effects: 'none',
  labels: { language: 'ts' },
})
const extra = capability('extra', { description: 'Comes later.', input: z.null(), output: z.null(), effects: 'none' })

const team = createTeam()
let a: Peer
let b: Peer
let c: Peer
const lines: { message_type: string; sender: string; receiver: string; message_id: string }[] = []

beforeAll(async () => {
  a = await team.start('a', undefined, { messageLog: (line) => lines.push(line) })
  b = await team.start('b', (peer) => peer.provide(work, () => null))
  c = await team.start('c')
  await Promise.all([a.manifest('b'), a.manifest('c'), b.manifest('c')])
})
afterAll(() => team.stop())

/** What a peer hears; the list grows. */
function hear(peer: Peer, target: { event: string } | { topic: string }) {
  const heard: ReceivedEvent[] = []
  const note = (event: ReceivedEvent) => heard.push(event)
  const stop = 'event' in target ? peer.onEvent(target.event, note) : peer.onTopic(target.topic, note)
  return { heard, stop }
}

describe('an event to one agent', () => {
  it('arrives with its sender, its name and its data, frozen', async () => {
    const { heard } = hear(b, { event: 'done' })
    expect(await a.emit({ agent: 'b', event: 'done' }, { ok: true, 说明: '完成' })).toEqual({ peers: 1 })
    await until(() => heard.length === 1)
    expect(heard[0]).toMatchObject({
      name: 'done',
      sender: 'a',
      data: { ok: true, 说明: '完成' },
      messageId: expect.stringMatching(/^msg_/),
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
    })
    expect(Object.isFrozen(heard[0]?.data)).toBe(true)
  })

  it('reaches no other agent, no other name and no topic of the same name', async () => {
    const others = [hear(c, { event: 'only' }), hear(b, { event: 'other' }), hear(b, { topic: 'only' })]
    const { heard } = hear(b, { event: 'only' })
    await a.emit({ agent: 'b', event: 'only' }, 1)
    await until(() => heard.length === 1)
    expect(others.map((one) => one.heard)).toEqual([[], [], []])
  })

  it('reaches every listener once, and none that has stopped', async () => {
    const [one, two] = [hear(b, { event: 'twice' }), hear(b, { event: 'twice' })]
    await a.emit({ agent: 'b', event: 'twice' }, 1)
    await until(() => two.heard.length === 1)
    one.stop()
    await a.emit({ agent: 'b', event: 'twice' }, 2)
    await until(() => two.heard.length === 2)
    expect(one.heard).toHaveLength(1)
  })

  it('events of one sender arrive in the order they were sent', async () => {
    const { heard } = hear(b, { event: 'counted' })
    await Promise.all(Array.from({ length: 100 }, (_, i) => a.emit({ agent: 'b', event: 'counted' }, i)))
    await until(() => heard.length === 100)
    expect(heard.map(({ data }) => data)).toEqual(Array.from({ length: 100 }, (_, i) => i))
  })

  it('a listener that throws is reported and does not keep others from hearing', async () => {
    const failures: string[] = []
    b.events.on('listener.failed', ({ where }) => failures.push(where))
    b.onEvent('bad', () => {
      throw new Error('of the user')
    })
    const { heard } = hear(b, { event: 'bad' })
    await a.emit({ agent: 'b', event: 'bad' }, 1)
    await until(() => heard.length === 1)
    expect(failures).toEqual(['event bad'])
  })

  it('that nobody listens for is taken all the same', async () => {
    expect(await a.emit({ agent: 'b', event: 'unheard' }, 1)).toEqual({ peers: 1 })
  })

  it('undefined is null', async () => {
    const { heard } = hear(b, { event: 'nothing' })
    await a.emit({ agent: 'b', event: 'nothing' }, undefined)
    await until(() => heard.length === 1)
    expect(heard[0]?.data).toBeNull()
  })
})

describe('a broadcast to a topic', () => {
  it('arrives at all who listen, not at who sends it nor at who does not', async () => {
    const [own, first, second] = [hear(a, { topic: 'news' }), hear(b, { topic: 'news' }), hear(c, { topic: 'news' })]
    const other = hear(b, { topic: 'other-news' })
    await untilToldOf(a, 'news', 2)
    await until(() => first.heard.length > 0 && second.heard.length > 0)
    expect(first.heard[0]).toMatchObject({ name: 'news', sender: 'a', data: { n: expect.any(Number) } })
    expect(own.heard).toEqual([])
    expect(other.heard).toEqual([])
    for (const one of [own, first, second, other]) one.stop()
  })

  it('is no event of the same name', async () => {
    const { heard } = hear(b, { event: 'mixed' })
    const topic = hear(b, { topic: 'mixed' })
    await untilToldOf(a, 'mixed', 1)
    await until(() => topic.heard.length > 0)
    expect(heard).toEqual([])
    topic.stop()
  })

  it('has a line in the message log, as every envelope has', async () => {
    const { heard, stop } = hear(b, { topic: 'logged' })
    await untilToldOf(a, 'logged', 1)
    await until(() => heard.length > 0)
    expect(lines.filter(({ message_id }) => message_id === heard[0]?.messageId)).toMatchObject([
      { message_type: 'event', sender: 'a' },
    ])
    stop()
  })
})

/** Broadcasts until so many peers are told of; resolves with how many broadcasts that took. */
async function untilToldOf(from: Peer, topic: string, peers: number): Promise<number> {
  for (let n = 1; ; n++) {
    const told = await from.emit({ topic }, { n })
    if (told.peers >= peers) return n
    if (n > 500) throw new Error(`only ${told.peers} peers on ${topic}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe('F-17 first messages after joining are lost', () => {
  it('to a topic that nobody listens to: 0 peers is what the publisher is told', async () => {
    expect(await a.emit({ topic: 'desert' }, 1)).toEqual({ peers: 0 })
  })

  it('published right after others have joined: delivered to as many as the publisher is told, or it is told of none', async () => {
    let delivered = 0
    let told = 0
    for (let round = 0; round < 20; round++) {
      const topic = `fresh-${round}`
      const [first, second] = [hear(b, { topic }), hear(c, { topic })]
      const { peers } = await a.emit({ topic }, round)
      expect(peers).toBeLessThanOrEqual(2)
      told += peers
      await until(() => first.heard.length + second.heard.length >= peers, `round ${round}: ${peers} told of`)
      delivered += first.heard.length + second.heard.length
      first.stop()
      second.stop()
    }
    expect(delivered).toBeGreaterThanOrEqual(told)
  })

  it('a subscriber that joins later hears what is published then', async () => {
    const { heard: early } = hear(b, { topic: 'later' })
    await untilToldOf(a, 'later', 1)
    const { heard: late } = hear(c, { topic: 'later' })
    await untilToldOf(a, 'later', 2)
    await until(() => late.length > 0)
    expect(early.length).toBeGreaterThan(0)
  })
})

describe('watching', () => {
  it('tells who is there, who joins, what changes, and who leaves', async () => {
    const changes: string[] = []
    const note = ({ type, agentId }: WatchChange) => changes.push(`${agentId} ${type}`)
    const stops = [a.watch({ capability: 'work' }, note)]
    expect(changes).toEqual(['b joined'])
    const d = await team.start('d', (peer) => peer.provide(work, () => null))
    await until(() => changes.includes('d joined'), `d joined in ${changes}`)
    d.provide(extra, () => null)
    await until(() => changes.includes('d changed'), 'd changed', 15_000)
    await d.stop()
    await until(() => changes.some((change) => /^d (left|offline)$/.test(change)), 'd left')
    expect(changes.filter((change) => change.startsWith('d'))[0]).toBe('d joined')
    for (const stop of stops) stop()
    expect((await a.find({ capability: 'work' })).filter(({ usable }) => usable).map(({ agentId }) => agentId)).toEqual(
      ['b'],
    )
  })

  it('of one agent tells only of that agent', async () => {
    const changes: string[] = []
    const stop = a.watch({ agent: 'e' }, ({ type, agentId }) => changes.push(`${agentId} ${type}`))
    const e = await team.start('e')
    await until(() => changes.length > 0)
    await e.stop()
    await until(() => changes.length > 1)
    expect(changes.every((change) => change.startsWith('e '))).toBe(true)
    expect(changes[0]).toBe('e joined')
    stop()
  })

  it('a graceful stop is told as left, and nobody comes back by a late report', async () => {
    const changes: string[] = []
    const f = await team.start('f', (peer) => peer.provide(work, () => null))
    const stop = a.watch({ agent: 'f' }, ({ type }) => changes.push(type))
    await until(() => changes.includes('joined'))
    await f.stop()
    await until(() => changes.includes('left'), 'left')
    expect(changes.filter((type) => type === 'joined')).toHaveLength(1)
    expect(changes.at(-1)).toBe('left')
    stop()
  })
})
