import { capability, peerIdOf } from '@hermes-peer/protocol'
import { createMemoryWorld, createTimeline, createTrace, type ManualClock, seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import { systemClock } from '../../src/clock.ts'
import { createPeerWith } from '../../src/create-peer.ts'
import { allowList } from '../../src/identity/allow-list.ts'
import { memoryEpochStore } from '../../src/identity/epoch.ts'
import { createKeyCheck } from '../../src/identity/key-check.ts'
import { createMemoryJournal } from '../../src/journal/memory-journal.ts'
import { keyNamed } from '../identity/support.ts'
import { until } from '../waiting.ts'
import { realPeer } from './team.ts'

const HOUR = 3_600_000
const work = capability('work', {
  description: 'Takes so many ms.',
  input: z.number(),
  output: z.string(),
  effects: 'none',
})

/** Three peers in virtual time, each with a wall clock of its own that can be set. */
async function scene() {
  const timeline = createTimeline()
  const random = seededRandom('clocks')
  const world = createMemoryWorld({ timeline, random: random.fork('world'), trace: createTrace() })
  const names = ['a', 'b', 'c']
  const trust = allowList(
    names.map((agent_id) => ({ agent_id, fingerprint: keyNamed(agent_id).publicKey.fingerprint })),
  )
  const clocks: Record<string, ManualClock> = {}
  const peers: Record<string, Peer> = {}
  const trouble: string[] = []
  let first: string | undefined
  for (const name of names) {
    const key = keyNamed(name)
    const clock = timeline.clock()
    const network = world.network({ peerId: peerIdOf(key.publicKey.raw) })
    clocks[name] = clock
    const peer = createPeerWith(
      { agentId: name, preset: 'none', ...(first ? { bootstrap: [first] } : {}) },
      {
        clock,
        random: random.fork(name),
        keys: createKeyCheck(),
        loopUtilization: () => 0,
        open: async () => ({
          key,
          trust,
          network,
          journal: createMemoryJournal(),
          epochs: memoryEpochStore(),
          neighbours: () => [],
          announce: () => () => undefined,
        }),
      },
    )
    peer.provide(work, async (ms) => {
      await timeline.sleep(ms)
      return name
    })
    for (const type of ['directory.suspect', 'directory.offline', 'directory.left'] as const) {
      peer.events.on(type, ({ agentId }) => trouble.push(`${name} ${type} ${agentId}`))
    }
    // The end of one of two links of a pair is no loss.
    peer.events.on('link.down', ({ agentId, last }) => last && trouble.push(`${name} link.down ${agentId}`))
    peers[name] = peer
    await timeline.runUntil(peer.start())
    first ??= peer.addresses[0]
  }
  onTestFinished(async () => {
    await timeline.runUntil(Promise.all(names.map((name) => peers[name]?.stop())))
  })
  const { a, b, c } = peers as { a: Peer; b: Peer; c: Peer }
  const advance = (ms: number) => timeline.advance(ms)
  await advance(15_000)
  const jump = (ms: number, ...who: string[]) => {
    for (const name of who) clocks[name]?.jumpWall(ms)
  }
  const call = (from: Peer, to: string, ms: number, timeoutMs = 60_000) =>
    from.call(work, ms, { agent: to, timeoutMs }).then(
      (output) => ({ output, at: timeline.now() }),
      (error: { code: string }) => ({ code: error.code, at: timeline.now() }),
    )
  return { timeline, a, b, c, trouble, advance, jump, call }
}

describe('F-25 elapsed time measured with the wall clock', () => {
  it.each([HOUR, -HOUR])(
    'the clock of the machine jumps by %d ms: calls in flight, time-outs and liveness go on as if nothing had happened',
    async (ms) => {
      const { timeline, a, b, c, trouble, advance, jump, call } = await scene()
      const since = timeline.now()
      const running = [call(a, 'b', 20_000), call(b, 'c', 25_000), call(c, 'a', 30_000, 10_000)]
      await advance(5000)
      jump(ms, 'a', 'b', 'c')
      const ends = await timeline.runUntil(Promise.all(running))
      expect(ends.map((end) => ('output' in end ? end.output : end.code))).toEqual(['b', 'c', 'TIMEOUT'])
      for (const [index, expected] of [20_000, 25_000, 10_000].entries()) {
        expect((ends[index]?.at as number) - since).toBeGreaterThanOrEqual(expected)
        expect((ends[index]?.at as number) - since).toBeLessThan(expected + 500)
      }
      await advance(3 * 60_000)
      expect(trouble).toEqual([])
      expect(await timeline.runUntil(call(a, 'b', 10))).toMatchObject({ output: 'b' })
    },
  )

  it.each([HOUR, -HOUR])(
    'one peer’s clock jumps by %d ms: nobody is declared dead, no time-out comes early or late',
    async (ms) => {
      const { timeline, a, b, c, trouble, advance, jump, call } = await scene()
      const since = timeline.now()
      // Those that do not concern it, and one whose deadline it measures itself.
      const running = [call(b, 'c', 20_000), call(c, 'b', 20_000), call(a, 'b', 120_000, 30_000)]
      await advance(5000)
      jump(ms, 'a')
      const ends = await timeline.runUntil(Promise.all(running))
      expect(ends.map((end) => ('output' in end ? end.output : end.code))).toEqual(['c', 'b', 'TIMEOUT'])
      expect((ends[2]?.at as number) - since).toBeGreaterThanOrEqual(30_000)
      expect((ends[2]?.at as number) - since).toBeLessThan(30_500)
      await advance(3 * 60_000)
      expect(trouble).toEqual([])
    },
  )

  it.each([120_000, -120_000])(
    'a step of %d ms, as NTP makes it, heals by itself: the offset is measured anew',
    async (ms) => {
      const { timeline, a, b, trouble, advance, jump, call } = await scene()
      jump(ms, 'a')
      // Two heartbeats are time enough.
      await advance(30_000)
      expect(await timeline.runUntil(call(a, 'b', 10))).toMatchObject({ output: 'b' })
      expect(await timeline.runUntil(call(b, 'a', 10))).toMatchObject({ output: 'a' })
      expect(trouble).toEqual([])
    },
  )

  it('over real libp2p: the wall clock of both jumps by an hour in the middle of a call', async () => {
    let offset = 0
    const system = systemClock()
    const seams = { clock: { ...system, now: () => Date.now() + offset } }
    let started = false
    let end = (): void => undefined
    const provider = await realPeer('provider', {
      knows: ['caller'],
      seams,
      prepare: (peer) =>
        peer.provide(work, () => {
          started = true
          return new Promise((resolve) => {
            end = () => resolve('done')
          })
        }),
    })
    const caller = await realPeer('caller', {
      knows: ['provider'],
      seams,
      bootstrap: [provider.addresses[0] as string],
    })
    const downs: string[] = []
    caller.events.on('link.down', ({ code }) => downs.push(code))
    const answer = caller.call(work, 1, { timeoutMs: 10_000 })
    await until(() => started)
    for (const jump of [HOUR, -2 * HOUR]) {
      offset += jump
      expect((await caller.find({ capability: 'work' }))[0]?.status).toBe('online')
    }
    end()
    expect(await answer).toBe('done')
    expect(downs).toEqual([])
  })
})
