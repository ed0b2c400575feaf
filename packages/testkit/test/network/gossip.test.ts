import type { Gossip, Network, Verdict } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { worldOf } from '../support/world.ts'

const TOPIC = 'news'
const text = (data: Uint8Array) => Buffer.from(data).toString()
const message = (of: string) => Buffer.from(of)

/** Peers connected along the given pairs, each subscribed with a verdict of its own. */
async function mesh(pairs: string[], verdicts: Record<string, Verdict> = {}, seed: number | string = 1) {
  const names = [...new Set(pairs.join(''))].sort().join('')
  const all = await worldOf(names, { seed })
  for (const [one, other] of pairs.map((pair) => [...pair] as [string, string])) {
    await all.channel(all.peer(one), all.peer(other))
  }
  const got: string[] = []
  const nameOf = (id: string) => [...names].find((name) => all.idOf(name) === id)
  const subscribe = (name: string, network: Network = all.peer(name)) =>
    network.subscribe(TOPIC, ({ from, data }: Gossip) => {
      got.push(`${name} ${text(data)} from ${nameOf(from)}`)
      return verdicts[name] ?? 'accept'
    })
  const leave = Object.fromEntries([...names].map((name) => [name, subscribe(name)]))
  return { ...all, got, leave, subscribe }
}

describe('gossip', () => {
  it('reaches all who are joined by a chain of those who accept it, each once', async () => {
    const { peer, got, timeline } = await mesh(['ab', 'bc', 'cd', 'bd'])
    expect(await timeline.runUntil(peer('a').publish(TOPIC, message('x')))).toBe(1)
    await timeline.advance('1s')
    expect(got.map((one) => one.slice(0, 3)).sort()).toEqual(['b x', 'c x', 'd x'])
    expect(got[0]).toBe('b x from a')
  })

  it('stops at those who ignore or reject it', async () => {
    for (const verdict of ['ignore', 'reject'] as const) {
      const { peer, got, timeline } = await mesh(['ab', 'bc'], { b: verdict })
      await peer('a').publish(TOPIC, message('x'))
      await timeline.advance('1s')
      expect(got).toEqual(['b x from a'])
    }
  })

  it('goes only over those who subscribe, and counts those it went to', async () => {
    const { peer, got, timeline, leave, subscribe } = await mesh(['ab', 'bc', 'ad'])
    leave.b?.()
    expect(await peer('a').publish(TOPIC, message('x'))).toBe(1)
    expect(await peer('a').publish('other', message('x'))).toBe(0)
    await timeline.advance('1s')
    expect(got).toEqual(['d x from a'])
    subscribe('b')
    expect(() => subscribe('b')).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    leave.a?.()
    expect(await peer('a').publish(TOPIC, message('y'))).toBe(2)
    await timeline.advance('1s')
    expect(got.slice(1).sort()).toEqual(['b y from a', 'c y from b', 'd y from a'])
  })

  it('does not cross a partition or reach the dead; a neighbour cut off gets it late', async () => {
    const { peer, got, timeline, world } = await mesh(['ab', 'ac', 'ad'])
    world.faults.partition([[peer('b').peerId]])
    world.faults.crash(peer('c').peerId)
    await peer('a').publish(TOPIC, message('x'))
    await timeline.advance('10s')
    expect(got).toEqual(['d x from a'])
    world.faults.heal()
    await timeline.advance('1s')
    expect(got).toEqual(['d x from a', 'b x from a'])
  })

  it('does not listen for a minute to one who sent much that was rejected', async () => {
    const { peer, got, timeline } = await mesh(['ab', 'cb'], { b: 'reject' })
    for (let i = 0; i < 20; i++) await peer('a').publish(TOPIC, message(`${i}`))
    await timeline.advance('1s')
    expect(got).toHaveLength(16)
    await peer('c').publish(TOPIC, message('of c'))
    await timeline.advance('1s')
    expect(got.at(-1)).toBe('b of c from c')
    await timeline.advance('1m')
    await peer('a').publish(TOPIC, message('again'))
    await timeline.advance('1s')
    expect(got.at(-1)).toBe('b again from a')
  })

  it('refuses what is too large for it', async () => {
    const { peer } = await worldOf('a', { settings: { gossipBytes: 10 } })
    await expect(peer('a').publish(TOPIC, new Uint8Array(11))).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      details: { size: 11, limit: 10 },
    })
  })

  it('gives each receiver bytes of its own, as they were when published', async () => {
    const { peer, timeline } = await mesh(['ab', 'ac'])
    const seen: string[] = []
    for (const name of 'bc') {
      peer(name).subscribe('own', ({ data }) => {
        seen.push(text(data))
        data.fill(0)
        return 'accept'
      })
    }
    const data = message('x')
    await peer('a').publish('own', data)
    data.fill(0)
    await timeline.advance('1s')
    expect(seen).toEqual(['x', 'x'])
  })
})

describe('gossip that is disturbed', () => {
  const run = async (chances: { loss?: number; duplicate?: number; reorder?: number }, seed: number | string = 1) => {
    const { peer, got, timeline, world } = await mesh(['ab'], {}, seed)
    world.faults.gossip(chances)
    for (let i = 0; i < 100; i++) await peer('a').publish(TOPIC, message(String(i).padStart(2, '0')))
    await timeline.advance('1s')
    world.faults.gossip({})
    const before = got.length
    await peer('a').publish(TOPIC, message('last'))
    await timeline.advance('1s')
    expect(got.length).toBe(before + 1)
    return { numbers: got.slice(0, before).map((one) => Number(one.split(' ')[1])), hits: world.faults.hits }
  }

  it('is lost', async () => {
    const { numbers, hits } = await run({ loss: 0.3 })
    expect(numbers.length).toBe(100 - hits.gossipLost)
    expect(hits.gossipLost).toBeGreaterThan(10)
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
  })

  it('comes twice', async () => {
    const { numbers, hits } = await run({ duplicate: 0.3 })
    expect(numbers.length).toBe(100 + hits.gossipDuplicated)
    expect(hits.gossipDuplicated).toBeGreaterThan(10)
    expect(new Set(numbers).size).toBe(100)
  })

  it('comes out of order', async () => {
    const { numbers, hits } = await run({ reorder: 0.3 })
    expect(numbers.length).toBe(100)
    expect(hits.gossipReordered).toBeGreaterThan(10)
    expect(numbers).not.toEqual([...numbers].sort((a, b) => a - b))
  })
})
