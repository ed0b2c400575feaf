import { capability } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import type { AnyEvent } from '../../src/telemetry/events.ts'

const work = capability('work', {
  description: 'Works.',
  input: z.number(),
  output: z.number(),
  // A repeated run would show.
  effects: 'once',
})

const MINUTE = 60_000
/** A life of two hours, of which the last half is for the change. */
const SHORT = { instanceLifeMs: 120 * MINUTE, instanceRenewMs: 30 * MINUTE, instanceOverlapMs: 10 * MINUTE }

let net: TestNetwork
let events: { at: string; event: AnyEvent }[]
beforeEach(() => {
  net = testNetwork({ seed: 11 })
  events = []
  net.onEvent((at, event) => events.push({ at, event }))
})
afterEach(() => net[Symbol.asyncDispose]())

const of = (at: string, type: AnyEvent['type']) =>
  events.filter((one) => one.at === at && one.event.type === type).map(({ event }) => event)

/** A caller and a provider that takes 0 to 2 s for each call. */
async function pair(tuning = {}): Promise<{ a: Peer; b: Peer; started: number[] }> {
  const started: number[] = []
  const b = await net.peer('b', { tuning })
  b.provide(work, async (n) => {
    started.push(n)
    await net.sleep(`${(n * 7) % 2000}ms`)
    return n
  })
  const a = await net.peer('a', { tuning })
  await net.advance('3s')
  return { a, b, started }
}

describe('a rotation', () => {
  it('threat: old key — of both ends under 1,000 calls fails none of them and starts none twice', async () => {
    const { a, b, started } = await pair()
    const calls: Promise<number>[] = []
    const rotations: Promise<unknown>[] = []
    for (let n = 0; n < 1000; n++) {
      if (n === 200) rotations.push(b.rotate())
      if (n === 500) rotations.push(a.rotate())
      if (n === 700) rotations.push(a.rotate(), b.rotate())
      calls.push(a.call(work, n))
      await net.advance('20ms')
    }
    const ends = await net.until(Promise.allSettled(calls))
    expect(ends.filter(({ status }) => status === 'rejected')).toEqual([])
    expect(ends.map((end) => end.status === 'fulfilled' && end.value)).toEqual(calls.map((_, n) => n))
    expect(started.toSorted((x, y) => x - y)).toEqual(calls.map((_, n) => n))
    expect(await net.until(Promise.all(rotations))).toMatchObject([
      { serial: 1 },
      { serial: 1 },
      { serial: 2 },
      { serial: 2 },
    ])
    await net.advance('30s')
    // Each old node has gone, and what is left is one link under the new keys.
    expect([of('a', 'identity.retired').length, of('b', 'identity.retired').length]).toEqual([2, 2])
    expect(await net.until(a.call(work, 1))).toBe(1)
  })

  it('changes no fingerprint of the agent, and its addresses name the new peer id', async () => {
    const { a, b } = await pair()
    const before = { fingerprint: b.fingerprint, addresses: b.addresses }
    const { fingerprint } = await net.until(b.rotate())
    expect(b.fingerprint).toBe(before.fingerprint)
    expect(fingerprint).not.toBe(before.fingerprint)
    expect(b.addresses.some((address) => before.addresses.includes(address))).toBe(false)
    const newcomer = await net.peer('c', { bootstrap: b.addresses })
    await net.advance('12s')
    expect(await net.until(newcomer.call(work, 3))).toBe(3)
    expect(await net.until(a.call(work, 4))).toBe(4)
  })

  it('one at a time', async () => {
    const { b } = await pair()
    const first = b.rotate()
    await expect(b.rotate()).rejects.toMatchObject({ code: 'BUSY' })
    expect(await net.until(first)).toMatchObject({ serial: 1 })
  })

  it('comes by itself when the certificate nears its end', async () => {
    const b = await net.peer('b', { tuning: SHORT })
    await net.until(b.rotate())
    await net.advance(`${89 * MINUTE}ms`)
    expect(of('b', 'identity.rotated')).toHaveLength(1)
    await net.advance(`${10 * MINUTE}ms`)
    expect(of('b', 'identity.rotated')).toMatchObject([{ serial: 1 }, { serial: 2 }])
  })

  it('of each end and of the one between holds up no call that is handed on, whose makers have never met', async () => {
    // The two ends cannot reach each other, nor hear of each other by presence: they are proven by manifests alone.
    net.faults.gossip({ loss: 1 })
    net.faults.apart(net.peerId('a'), net.peerId('p'))
    const peerIdOf = (peer: Peer) => peer.addresses[0]?.split('/').at(-1) as string
    const f = await net.peer('f')
    f.provide(work, (_, ctx) => ctx.forward('p') as never)
    const p = await net.peer('p')
    p.provide(work, (n) => n)
    const a = await net.peer('a')
    await net.advance('3s')
    let n = 0
    const call = () => net.until(a.call(work, ++n, { agent: 'f' }))
    expect(await call()).toBe(1)
    for (const peer of [a, p, f]) {
      await net.until(peer.rotate())
      net.faults.apart(peerIdOf(a), peerIdOf(p))
      expect(await call()).toBe(n)
      await net.advance('20s')
      expect(await call()).toBe(n)
    }
    expect(of('a', 'link.up').some((event) => event.type === 'link.up' && event.agentId === 'p')).toBe(false)
  })

  it('goes on with tasks, streams and sessions under way', async () => {
    const draft = capability('draft', {
      description: 'Writes.',
      input: z.number(),
      yields: z.number(),
      output: z.number(),
      effects: 'once',
    })
    const b = await net.peer('b')
    const sessions = new Set<string>()
    b.provide(work, async (n, ctx) => {
      if (ctx.session) sessions.add(ctx.session.id)
      await net.sleep('8s')
      return n
    })
    b.provide(draft, async function* (count) {
      for (let n = 0; n < count; n++) {
        await net.sleep('500ms')
        yield n
      }
      return count
    })
    const a = await net.peer('a')
    await net.advance('3s')
    const task = await net.until(a.submit(work, 7))
    const stream = a.stream(draft, 30)
    const read: number[] = []
    const reading = (async () => {
      for await (const n of stream) read.push(n)
      return stream.result
    })()
    const session = await net.until(a.session('b'))
    const before = session.call(work, 1)
    await net.advance('1s')
    await net.until(Promise.all([b.rotate(), a.rotate()]))
    const after = session.call(work, 2)
    expect(await net.until(Promise.all([before, after, task.result(), reading]))).toEqual([1, 2, 7, 30])
    expect(read).toEqual(Array.from({ length: 30 }, (_, n) => n))
    expect(sessions.size).toBe(1)
    await net.advance('20s')
    expect([of('a', 'identity.retired').length, of('b', 'identity.retired').length]).toEqual([1, 1])
  })
})
