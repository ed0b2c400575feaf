import { HermesError } from '@hermes-peer/protocol'
import { seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { joinWays } from '../src/join-ways.ts'

const way = (index: number) => `/ip4/127.0.0.1/tcp/4001/p2p/n${index}`

async function joining(options: { neighbours?: number; bootstrap?: string[]; there?: (way: string) => boolean }) {
  const tried: string[] = []
  const absent: string[] = []
  await joinWays({
    settings: { bootstrap: options.bootstrap ?? [] },
    opened: { neighbours: () => Array.from({ length: options.neighbours ?? 0 }, (_, index) => way(index)) },
    network: { peerId: 'n0' },
    random: seededRandom(5),
    async join(address) {
      tried.push(address)
      if (!(options.there?.(address) ?? true)) throw new HermesError('PEER_UNREACHABLE')
    },
    absent: (address) => absent.push(address),
  })
  return { tried, absent }
}

describe('joining the network', () => {
  it('F-16 goes through eight of many neighbours, different ones each time, and never through itself', async () => {
    const { tried } = await joining({ neighbours: 50 })
    expect(tried).toHaveLength(8)
    expect(new Set(tried).size).toBe(8)
    expect(tried).not.toContain(way(0))
    expect(tried).not.toEqual(Array.from({ length: 8 }, (_, index) => way(index + 1)))
  })

  it('goes through all of few', async () => {
    expect((await joining({ neighbours: 6 })).tried).toEqual([1, 2, 3, 4, 5].map(way))
  })

  it('goes on until one answers: killed ones are still listed', async () => {
    const { tried } = await joining({ neighbours: 40, there: (address) => address === way(17) })
    expect(tried).toContain(way(17))
    expect(tried.length % 8 === 0 || tried.length === 39).toBe(true)
    expect((await joining({ neighbours: 40, there: () => false })).tried).toHaveLength(39)
  })

  it('tries each bootstrap peer, and tells of those that are not there; of neighbours it tells nothing', async () => {
    const bootstrap = ['/dns4/a/tcp/1', '/dns4/b/tcp/1', way(3)]
    const { tried, absent } = await joining({ neighbours: 5, bootstrap, there: (address) => address.includes('/a/') })
    expect(tried.toSorted()).toEqual([...bootstrap, way(1), way(2), way(4)].toSorted())
    expect(absent.toSorted()).toEqual(['/dns4/b/tcp/1', way(3)].toSorted())
  })

  it('rejects for an address that can never answer', async () => {
    const joined = joinWays({
      settings: { bootstrap: ['/x'] },
      opened: { neighbours: () => [] },
      network: { peerId: 'n0' },
      random: seededRandom(1),
      join: () => Promise.reject(new HermesError('INVALID_ADDRESS', { message: '/x is none' })),
      absent: () => undefined,
    })
    await expect(joined).rejects.toMatchObject({ code: 'INVALID_ADDRESS', message: 'bootstrap: /x is none' })
  })
})
