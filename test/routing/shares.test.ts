import type { Peer } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { traffic, work } from './traffic.ts'

const IDEAL: Readonly<Record<string, number>> = { one: 1 / 7, two: 2 / 7, four: 4 / 7 }

/** Who gets more than 15 % beside what its capacity asks for. */
const unfair = (shares: Readonly<Record<string, number>>, ideal = IDEAL) =>
  Object.entries(ideal).filter(([name, share]) => Math.abs((shares[name] ?? 0) / share - 1) > 0.15)

describe('providers of capacity 1 : 2 : 4 under three callers', () => {
  it('get their shares; a killed one loses its own at once; a newcomer stays under 10 % until it is proven', async () => {
    await using scene = traffic(4)
    const { net, runs, most } = scene
    const callers: Peer[] = []
    for (const name of ['x', 'y', 'z']) callers.push(await net.peer(name, { journal: false }))
    const places: Readonly<Record<string, number>> = { one: 2, two: 4, four: 8 }
    for (const [name, count] of Object.entries(places)) await scene.provider(name, count)
    await net.advance('1s')

    // 14 places of 100 ms: 28 calls a second from each of three fill 60 % of them. First 500 to warm up.
    expect(await scene.drive(callers, 28, 6)).toEqual({ failed: 0 })
    expect(runs.length).toBeGreaterThan(499)
    const warm = net.timeline.now()
    expect(await scene.drive(callers, 28, 14)).toEqual({ failed: 0 })
    const shares = scene.shares(warm)
    expect(unfair(shares), JSON.stringify(shares)).toEqual([])
    for (const [name, count] of most) expect(count, name).toBeLessThanOrEqual(places[name] as number)

    const pending = callers.flatMap((caller) => [1, 2, 3, 4].map((n) => caller.call(work, n)))
    await net.advance(20)
    await net.crash('two')
    const killed = net.timeline.now()
    expect(await scene.drive(callers, 18, 4)).toEqual({ failed: 0 })
    expect(await net.until(Promise.all(pending))).toHaveLength(12)
    const late = net.calls(work).filter(({ at }) => at > killed + 1000)
    expect(late.length).toBeGreaterThan(100)
    expect(late.filter(({ to }) => to === 'two')).toEqual([])

    await scene.provider('new', 8)
    const joined = net.timeline.now()
    expect(await scene.drive(callers, 18, 5)).toEqual({ failed: 0 })
    const { new: share = 0 } = scene.shares(joined)
    expect(share).toBeGreaterThan(0)
    expect(share).toBeLessThan(0.1)
  })

  it('the check finds shares that are not theirs', () => {
    expect(unfair(IDEAL)).toEqual([])
    expect(unfair({ one: 1 / 3, two: 1 / 3, four: 1 / 3 }).map(([name]) => name)).toEqual(['one', 'two', 'four'])
    expect(unfair({ two: 3 / 7, four: 4 / 7 }).map(([name]) => name)).toEqual(['one', 'two'])
  })
})
