import { randomBytes } from 'node:crypto'
import { capability } from '@hermes-peer/protocol'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Peer } from '../../../src/api.ts'
import { createPeer } from '../../../src/create-peer.ts'
import { memoryDirectory } from '../../../src/directory/sources/memory.ts'
import { redisDirectory } from '../../../src/directory/sources/redis.ts'
import { createRedisClient } from '../../../src/directory/sources/redis-client.ts'
import { temporaryFolder } from '../../identity/support.ts'
import { until } from '../../waiting.ts'
import { noRedis, type RedisServer, redisServer } from './redis-server.ts'
import { memberOf } from './support.ts'

const work = capability('work', { description: 'Works.', input: z.null(), output: z.string(), effects: 'none' })
const missing = noRedis()

describe.skipIf(missing !== undefined)(
  `peers with a Redis as directory${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let server: RedisServer
    beforeAll(async () => {
      server = await redisServer()
    })
    afterAll(() => server.dispose())
    let peers: Peer[] = []
    let prefix: string
    beforeEach(() => {
      peers = []
      prefix = randomBytes(8).toString('hex')
    })
    afterEach(async () => {
      server.thaw()
      await Promise.all(peers.map((peer) => peer.stop({ drainMs: 0 })))
    })

    /** A peer that knows others by what the directories say, and by nothing else. */
    function peer(agentId: string, more: Partial<Parameters<typeof createPeer>[0]> = {}): Peer {
      const made = createPeer({
        agentId,
        folder: folderOf(),
        directories: [redisDirectory(server.url, { prefix })],
        journal: false,
        ...more,
      })
      peers.push(made)
      return made
    }
    let folder: string
    const folderOf = (): string => folder
    beforeEach(() => {
      folder = temporaryFolder()
    })

    it('find each other by it alone, and never by its messages: it holds names and addresses, with their lease', async () => {
      const worker = await peer('worker')
        .provide(work, async () => '完成')
        .start()
      const client = await createRedisClient({ url: server.url, waitMs: () => 100 })
      client.on('error', () => undefined)
      await client.connect()
      const ask = (...command: string[]) => client.sendCommand(command) as Promise<unknown>
      try {
        let keys: unknown = []
        const look = async (): Promise<void> => {
          keys = await ask('KEYS', `${prefix}:*`)
        }
        await until(() => {
          void look()
          return (keys as string[]).length === 2
        }, 'the registration')
        const [index, own] = (keys as string[]).sort() as [string, string]
        expect(index).toBe(`${prefix}:default:capability:work`)
        const value = JSON.parse((await ask('GET', own)) as string) as Record<string, unknown>
        expect(value).toEqual({ version: 1, agent_id: 'worker', addresses: worker.addresses })
        expect(await ask('PTTL', own)).toBeGreaterThan(50_000)
        const desk = await peer('desk').start()
        expect(await desk.call(work, null)).toBe('完成')
        expect(((await ask('KEYS', `${prefix}:*`)) as string[]).sort()).toEqual([index, own])
        await worker.stop({ drainMs: 0 })
        expect(await ask('KEYS', `${prefix}:*`)).toEqual([])
      } finally {
        client.destroy()
      }
    })

    it('that hangs holds up neither calls that other directories help, nor start, nor stop', async () => {
      const other = memoryDirectory()
      const directories = [redisDirectory(server.url, { prefix }), other]
      const reasons: string[] = []
      await peer('worker', { directories })
        .provide(work, async () => 'done')
        .start()
      const desk = peer('desk', { directories, tuning: { lookupTimeoutMs: 2000 } })
      desk.events.on('directory.unreachable', ({ reason }) => reasons.push(reason))
      await desk.start()
      const absent = async () => {
        const error = await desk.callDynamic('absent', null, { timeoutMs: 15_000 }).catch((reason: unknown) => reason)
        return error as { code: string; details: unknown }
      }
      // It is connected once all directories have said that nobody offers this.
      let answered = false
      while (!answered) answered = (await absent()).code === 'NO_CANDIDATE'
      reasons.length = 0
      server.freeze()
      expect(await desk.call(work, null)).toBe('done')
      expect(await absent()).toMatchObject({
        code: 'DIRECTORY_UNREACHABLE',
        details: {
          sources: [{ source: expect.stringMatching(/^redis 127\.0\.0\.1:\d+$/), reason: 'no answer in time' }],
        },
      })
      expect(reasons).toEqual(['no answer in time'])
      const late = await peer('late', { directories }).start()
      await late.stop({ drainMs: 0 })
      await desk.stop({ drainMs: 0 })
    })

    it('believes nothing that others wrote there', async () => {
      const factory = redisDirectory(server.url, { prefix })
      const { source, self } = await memberOf(factory, 'a')
      const client = await createRedisClient({ url: server.url, waitMs: () => 100 })
      client.on('error', () => undefined)
      await client.connect()
      const far = String(Date.now() + 1e9)
      const put = async (name: string, value: string): Promise<void> => {
        await client.sendCommand(['SET', `${prefix}:default:peer:${name}`, value])
        await client.sendCommand(['ZADD', `${prefix}:default:capability:work`, far, name])
      }
      try {
        await put('no-json', '{')
        await put('null', 'null')
        await put('numbers', '{"addresses": [1, 2]}')
        await put('huge', JSON.stringify({ addresses: ['/ip4/1.2.3.4/tcp/1'], more: 'x'.repeat(20_000) }))
        await put('good', JSON.stringify({ addresses: Array(100).fill('/ip4/1.2.3.4/tcp/1') }))
        await client.sendCommand(['ZADD', `${prefix}:default:capability:work`, far, 'without-registration'])
        await client.sendCommand(['SET', `${prefix}:default:capability:strange`, 'no sorted set'])
        const ask = async (): Promise<unknown[]> => {
          const found: unknown[] = []
          for await (const peer of source.find('work', { signal: AbortSignal.timeout(5000) })) found.push(peer)
          return found
        }
        let found: unknown[] | undefined
        await until(() => {
          const asked = found === undefined ? ask() : undefined
          asked?.then(
            (all) => {
              found = all
            },
            () => undefined,
          )
          return found !== undefined
        }, 'a connection to Redis')
        expect(found).toEqual([{ peerId: 'good', addresses: Array(16).fill('/ip4/1.2.3.4/tcp/1') }])
        const strange = source
          .find('strange', { signal: AbortSignal.timeout(5000) })
          [Symbol.asyncIterator]()
          .next()
        await expect(strange).rejects.toMatchObject({ code: 'DIRECTORY_UNREACHABLE', message: /WRONGTYPE/ })
        await source.register(
          { ...self, capabilities: ['work'], leaseMs: 60_000 },
          { signal: AbortSignal.timeout(5000) },
        )
      } finally {
        client.destroy()
        await source.close()
      }
    })
  },
)

describe('a Redis that was never there', () => {
  it('fails no start, is told once, and leaves nothing running after close', async () => {
    const { source, self } = await memberOf(redisDirectory('redis://user:geheim@127.0.0.1:1'), 'a')
    const signal = AbortSignal.timeout(5000)
    const registering = source.register({ ...self, capabilities: ['work'], leaseMs: 60_000 }, { signal })
    const error = await registering.catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'DIRECTORY_UNREACHABLE', retryable: true })
    expect(JSON.stringify(error) + String(error)).not.toContain('geheim')
    await source.close()
    await source.close()
  })
})
