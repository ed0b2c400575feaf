import {
  type AnyEvent,
  capability,
  createPeer,
  dhtDirectory,
  isHermesError,
  type Peer,
  type PeerOptions,
  redisDirectory,
} from 'hermes-peer'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { noRedis, redisServer } from '../../packages/peer/test/directory/sources/redis-server.ts'
import { until } from '../../packages/peer/test/waiting.ts'
import { free } from '../calls/support/process-messages.ts'
import { type Child, startChild } from '../calls/support/processes.ts'
import { createTeam } from '../calls/support/team.ts'

const work = capability('work', { description: 'Works.', input: z.null(), output: z.string(), effects: 'none' })
const missing = noRedis()

/** The 2 min of an answer that cannot be had anew, in seconds: the long ones are those of the simulation. */
const tuning = { lookupFreshMs: 200, lookupStaleMs: 4000, lookupRetryMs: 200, lookupTimeoutMs: 1000 }

describe.skipIf(missing !== undefined)(
  `bootstrap process and Redis are killed${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    it('calls go on without one error; look-ups are stale, then fail typed, and recover without a restart', {
      timeout: 60_000,
    }, async () => {
      const team = createTeam({ journal: false })
      onTestFinished(() => team.stop())
      const redis = await redisServer()
      onTestFinished(() => redis.dispose())
      const children = new Map<string, Child>()
      onTestFinished(async () => {
        await Promise.all([...children.values()].map((child) => child.end()))
      })
      const start = async (agentId: string, more: Partial<PeerOptions> = {}): Promise<string> => {
        const child = await startChild({ agentId, folder: team.folder, journal: false, redis: redis.url, ...more })
        children.set(agentId, child)
        return (await child.message('ready')).address
      }
      const both: Partial<PeerOptions> = { directories: [dhtDirectory(), redisDirectory(redis.url)], tuning }

      const seed = await start('seed')
      await start('island')
      await team.start('worker', (peer) => peer.provide(work, async () => 'worker'), both)
      const desk: Peer = createPeer({
        agentId: 'desk',
        folder: team.folder,
        journal: false,
        bootstrap: [seed],
        ...both,
      })
      onTestFinished(() => desk.stop({ drainMs: 0 }))
      const events: AnyEvent[] = []
      desk.events.onAny((event) => {
        if (/^(directory|link)\./.test(event.type)) events.push(event)
      })
      const seen = (type: AnyEvent['type'], text: string) =>
        events.some((event) => event.type === type && JSON.stringify(event).includes(text))
      await desk.start()
      // All directories have said that nobody offers this: each of them is reached.
      const absent = () => desk.callDynamic('absent', null).catch((error: { code: string }) => error.code)
      for (let code: unknown; code !== 'NO_CANDIDATE'; ) code = await absent()
      expect(await desk.call(free, '你好', { agent: 'island' })).toBe('你好')

      let calls = 0
      let over = false
      const failures: unknown[] = []
      const calling = (async () => {
        for (; !over && failures.length < 100; calls++) {
          await desk.call(work, null).catch((error: unknown) => failures.push(error))
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
      })()
      onTestFinished(async () => {
        over = true
        await calling
      })
      /** What a new look-up comes to. */
      const look = async (): Promise<string> => {
        try {
          const found = (await desk.find({ capability: 'free' })).filter(({ agentId }) => agentId === 'island')
          return (
            found.map(({ usable, stale }) => `${usable ? 'usable' : 'gone'}${stale ? ', stale' : ''}`).join() ||
            'nothing'
          )
        } catch (error) {
          if (!isHermesError(error)) throw error
          return error.code
        }
      }
      let last = ''
      const states: string[] = []
      const comesTo = async (wanted: string): Promise<void> => {
        const end = performance.now() + 30_000
        while (last !== wanted) {
          if (performance.now() > end) throw new Error(`${wanted} did not come: ${states.join(' → ')}`)
          await new Promise((resolve) => setTimeout(resolve, 10))
          const now = await look()
          if (now !== last) states.push(now)
          last = now
        }
      }
      await comesTo('usable')
      // … and has been asked about this one.
      for (const end = performance.now() + 5 * tuning.lookupFreshMs; performance.now() < end; ) {
        expect(await look()).toBe('usable')
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      states.length = 0

      await Promise.all([redis.kill(), ...[...children.values()].map((child) => child.end())])
      children.clear()
      await comesTo('gone, stale')
      await comesTo('DIRECTORY_UNREACHABLE')
      expect(states.filter((state) => /DIRECTORY|stale/.test(state)).at(0)).toMatch(/stale/)
      expect(seen('directory.unreachable', 'redis 127.0.0.1')).toBe(true)
      expect(seen('directory.stale', '"capability":"free"')).toBe(true)

      events.length = 0
      await redis.start()
      const listen = (address: string) => ({ listen: [address.replace(/\/p2p\/.*/, '')] })
      await start('seed', listen(seed))
      await start('island')
      await comesTo('usable')
      expect(await desk.call(free, 'again', { agent: 'island' })).toBe('again')
      expect(seen('directory.reachable', 'redis 127.0.0.1')).toBe(true)
      await until(() => seen('link.up', '"agentId":"seed"'), 'a link to the seed', 20_000)

      over = true
      await calling
      expect(failures).toEqual([])
      expect(calls).toBeGreaterThan(20)
    })
  },
)
