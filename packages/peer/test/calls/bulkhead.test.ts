import { capability } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'

const work = capability('work', {
  description: 'One at a time, 100 ms each.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
  constraints: { maxConcurrency: 1 },
})
const free = capability('free', { description: 'Any number.', input: z.string(), output: z.string(), effects: 'none' })

async function usable(net: TestNetwork, caller: Peer, name: string, agent: string): Promise<void> {
  for (;;) {
    const found = await net.until(caller.find({ capability: name, agent }))
    if (found.some((one) => one.usable)) return
    await net.advance('100ms')
  }
}

describe('bulkhead', () => {
  it('a caller that asks for much does not starve another one at the provider; each one’s own order is kept', async () => {
    await using net = testNetwork({ seed: 71 })
    const order: string[] = []
    const provider = await net.peer('provider')
    provider.provide(work, async (name) => {
      order.push(name)
      await net.sleep('100ms')
      return name
    })
    const [greedy, polite] = [await net.peer('greedy'), await net.peer('polite')]
    for (const caller of [greedy, polite]) await usable(net, caller, 'work', 'provider')
    const many = Array.from({ length: 100 }, (_, i) => greedy.call(work, `g${i}`))
    await net.timeline.runUntil(() => order.length === 5)
    const since = net.timeline.now()
    const few = Array.from({ length: 5 }, (_, i) => polite.call(work, `p${i}`))
    await net.until(Promise.all(few))
    // Every other place is its own: ten turns of 100 ms and what runs.
    expect(net.timeline.now() - since).toBeLessThan(1300)
    await net.until(Promise.all(many))
    const of = (who: string) => order.filter((name) => name.startsWith(who))
    expect(of('g')).toEqual(Array.from({ length: 100 }, (_, i) => `g${i}`))
    expect(of('p')).toEqual(Array.from({ length: 5 }, (_, i) => `p${i}`))
  })

  it('a provider that hangs holds up no call to another one, although calls to it fill all its places and its line', async () => {
    await using net = testNetwork({ seed: 72 })
    let hung = 0
    const tuning = { inFlightPerPeer: 8, outboxPerPeer: 20 }
    const slow = await net.peer('slow')
    slow.provide(free, async (_, ctx) => {
      hung++
      await net.sleep('1h', { signal: ctx.signal })
      return 'never'
    })
    const quick = await net.peer('quick')
    quick.provide(free, (name) => name)
    const caller = await net.peer('caller', { tuning })
    for (const agent of ['slow', 'quick']) await usable(net, caller, 'free', agent)
    const stuck = Array.from({ length: 28 }, () => caller.call(free, 'x', { agent: 'slow', timeoutMs: 5000 }))
    for (const one of stuck) one.catch(() => undefined)
    await net.timeline.runUntil(() => hung === 8)
    for (let i = 0; i < 50; i++) {
      const since = net.timeline.now()
      expect(await net.until(caller.call(free, `q${i}`, { agent: 'quick' }))).toBe(`q${i}`)
      expect(net.timeline.now() - since).toBeLessThan(100)
    }
    const ends = await net.until(Promise.allSettled(stuck))
    expect(ends.map(({ status }) => status)).toEqual(ends.map(() => 'rejected'))
  })
})
