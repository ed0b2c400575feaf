import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { providerCid } from '@hermes-peer/protocol'
import { type DirectoryHome, type DirectoryMember, directoryCompliance, manualClock } from '@hermes-peer/testkit'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { dhtDirectory } from '../../../src/directory/sources/dht.ts'
import { memoryDirectory } from '../../../src/directory/sources/memory.ts'
import { redisDirectory } from '../../../src/directory/sources/redis.ts'
import { staticDirectory } from '../../../src/directory/sources/static.ts'
import { createLibp2pNetwork } from '../../../src/network/libp2p/index.ts'
import type { Network } from '../../../src/network/network.ts'
import { until } from '../../waiting.ts'
import { noRedis, type RedisServer, redisServer } from './redis-server.ts'
import { memberOf } from './support.ts'

const PROTOCOL = '/hermes/test/1.0.0'
const nothing = (): void => undefined
const shortly = () => new Promise<void>((resolve) => setTimeout(resolve, 20))
const enough = () => AbortSignal.timeout(300)

describe('a directory in memory', () => {
  const home = async (): Promise<DirectoryHome> => {
    const factory = memoryDirectory()
    const clock = manualClock()
    return {
      member: (name) => memberOf(factory, name, { clock }),
      pause: shortly,
      lease: { ms: 60_000, pass: (ms) => clock.timeline.advance(ms) },
      outage: {
        begin: async () => factory.reachable(false),
        end: async () => factory.reachable(true),
        enough,
      },
      dispose: async () => undefined,
    }
  }
  for (const { name, run } of directoryCompliance(home)) it(name, run)
})

describe('a directory in a file', () => {
  const home = async (): Promise<DirectoryHome> => {
    const folder = mkdtempSync(join(tmpdir(), 'hermes-directory-'))
    const path = join(folder, 'agents.yaml')
    const clock = manualClock()
    const agents = new Map<string, object>()
    const write = (): void => writeFileSync(path, JSON.stringify({ agents: [...agents.values()] }))
    write()
    return {
      member: (name) => memberOf(staticDirectory(path), name, { clock }),
      pause: shortly,
      async offer({ self }, capabilities) {
        const { agentId, peerId, addresses } = self
        agents.set(agentId, { agent_id: agentId, peer_id: peerId, addresses, capabilities })
        write()
        await clock.timeline.advance(1000)
      },
      dispose: async () => rmSync(folder, { recursive: true }),
    }
  }
  for (const { name, run } of directoryCompliance(home)) it(name, run)
})

describe('the DHT as a directory', () => {
  const world = async () => {
    const networks: Network[] = []
    const started = async (): Promise<Network> => {
      const network = createLibp2pNetwork({ privateKey: randomBytes(32), networkName: 'default' })
      network.handle(PROTOCOL, (channel) => channel.listen({ data: nothing, drained: nothing, closed: nothing }))
      await network.start()
      networks.push(network)
      return network
    }
    const join = async (network: Network, hub: Network): Promise<void> => {
      let routable = false
      network.observe({
        routable: () => {
          routable = true
        },
      })
      const target = { peerId: hub.peerId, addresses: hub.addresses() }
      await network.open(target, PROTOCOL, { signal: AbortSignal.timeout(10_000) })
      await until(() => routable, 'a place in the DHT')
    }
    const member = async (name: string, network: Network): Promise<DirectoryMember> => {
      const { source } = await memberOf(dhtDirectory(), name, { network, peerId: network.peerId })
      return { source, self: { agentId: name, peerId: network.peerId, addresses: network.addresses() } }
    }
    const dispose = async () => {
      await Promise.all(networks.map((network) => network.stop()))
    }
    return { started, join, member, dispose }
  }
  const home = async (): Promise<DirectoryHome> => {
    const { started, join, member, dispose } = await world()
    /** Somebody who keeps what the others say. */
    const hub = await started()
    return {
      async member(name) {
        const network = await started()
        await join(network, hub)
        return member(name, network)
      },
      withdraws: false,
      pause: shortly,
      looks: 700,
      dispose,
    }
  }
  for (const { name, run } of directoryCompliance(home)) it(name, run)

  it('tells that nobody is there to ask from that nobody offers it, and is there again by itself', async () => {
    const { started, join, member, dispose } = await world()
    onTestFinished(dispose)
    const [hub, own] = [await started(), await started()]
    await join(own, hub)
    const { source } = await member('b', own)
    const ask = async (ms: number): Promise<number> => {
      let found = 0
      for await (const _ of source.find('work', { signal: AbortSignal.timeout(ms) })) found++
      return found
    }
    expect(await ask(10_000)).toBe(0)
    await hub.stop()
    await expect(ask(300)).rejects.toMatchObject({ code: 'DIRECTORY_UNREACHABLE', retryable: true })
    const back = await started()
    await join(own, back)
    expect(await ask(10_000)).toBe(0)
    const provider = await started()
    await join(provider, back)
    await provider.provide(providerCid('default', 'work'), { signal: AbortSignal.timeout(10_000) })
    expect(await ask(10_000)).toBe(1)
  })

  it('F-28 of a network of one, nobody is missing: nothing is found, which is an answer', async () => {
    const { started, dispose } = await world()
    onTestFinished(dispose)
    const alone = await started()
    const { source } = await memberOf(dhtDirectory(), 'a', { network: alone, peerId: alone.peerId, seeded: false })
    const found = []
    for await (const peer of source.find('work', { signal: AbortSignal.timeout(300) })) found.push(peer)
    expect(found).toEqual([])
  })
})

const missing = noRedis()

describe.skipIf(missing !== undefined)(`a Redis as directory${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await redisServer()
  })
  afterAll(() => server.dispose())

  const home = async (): Promise<DirectoryHome> => {
    const factory = redisDirectory(server.url, { prefix: randomBytes(8).toString('hex') })
    return {
      async member(name) {
        const made = await memberOf(factory, name)
        let connected = false
        const look = async (): Promise<void> => {
          const asked = made.source.find('nothing', { signal: AbortSignal.timeout(1000) })[Symbol.asyncIterator]()
          connected ||= await asked.next().then(
            () => true,
            () => false,
          )
        }
        await until(() => {
          void look()
          return connected
        }, 'a connection to Redis')
        return made
      },
      lease: { ms: 300, pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) },
      pause: shortly,
      looks: 700,
      outage: { begin: () => server.kill(), end: () => server.start(), enough },
      dispose: async () => undefined,
    }
  }
  for (const { name, run } of directoryCompliance(home)) it(name, run)
})
