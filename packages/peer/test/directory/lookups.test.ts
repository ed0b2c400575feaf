import { HermesError } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createLookups } from '../../src/directory/lookups.ts'
import { createSourceHealth } from '../../src/directory/sources/health.ts'
import type { DirectorySource } from '../../src/directory/sources/source.ts'
import type { FoundPeer } from '../../src/network/network.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'

/** A source that does what the test says. */
function fakeSource(name: string) {
  const state = {
    name,
    asked: 0,
    peers: [] as readonly FoundPeer[],
    outage: undefined as string | undefined,
    hangs: false,
  }
  const source = {
    name,
    leased: true,
    async *find(_: string, { signal }: { signal: AbortSignal }) {
      state.asked++
      if (state.outage) throw new HermesError('DIRECTORY_UNREACHABLE', { message: state.outage })
      if (state.hangs)
        await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      yield* state.peers
    },
  } as unknown as DirectorySource
  return { state, source }
}

const peer = (name: string, ...addresses: string[]): FoundPeer => ({
  peerId: name,
  addresses: addresses.length > 0 ? addresses : [`/ip4/127.0.0.1/tcp/1/p2p/${name}`],
})

function looking(names: readonly string[], answers: (peer: FoundPeer) => number | undefined = () => 1) {
  const clock = manualClock()
  const telemetry = createTelemetry({ clock })
  const fakes = names.map(fakeSource)
  const events: string[] = []
  const met: FoundPeer[] = []
  const dialled: FoundPeer[] = []
  telemetry.events.onAny((event) => {
    if (event.type === 'directory.stale') events.push(`stale ${event.source} ${event.ageMs}`)
    if (event.type === 'directory.unreachable') events.push(`unreachable ${event.source}: ${event.reason}`)
    if (event.type === 'directory.reachable') events.push(`reachable ${event.source}`)
  })
  const lookups = createLookups({
    clock,
    tunables: DEFAULTS,
    telemetry,
    sources: fakes.map(({ source }) => source),
    health: createSourceHealth(telemetry),
    async meet(found) {
      dialled.push(found)
      const ms = answers(found)
      await new Promise<void>((resolve) => clock.after(ms ?? 2000, resolve))
      if (ms === undefined) return false
      met.push(found)
      return true
    },
  })
  const until = <T>(promise: Promise<T>) => clock.timeline.runUntil(promise)
  return {
    clock,
    lookups,
    fakes: fakes.map(({ state }) => state),
    events,
    met,
    dialled,
    look: async (capability = 'work', force = true) => {
      const running = lookups.run(capability, force)
      if (running !== undefined) await until(running)
      return running !== undefined
    },
    advance: (ms: number) => clock.timeline.advance(ms),
    until,
  }
}

describe('a look-up', () => {
  it('asks once at a time, and afresh after 30 s only', async () => {
    const { lookups, fakes, advance, look } = looking(['dht'])
    const [source] = fakes
    if (source) source.peers = [peer('a')]
    expect(lookups.run('work', false)).toBe(lookups.run('work', true))
    await advance(100)
    expect(await look('work', false)).toBe(false)
    await advance(29_000)
    expect(await look('work', false)).toBe(false)
    await advance(1000)
    expect(await look('work', false)).toBe(true)
    expect(source?.asked).toBe(2)
  })

  it('asks all sources at the same time, and uses what the first one finds although another one hangs', async () => {
    const { lookups, fakes, met, advance } = looking(['file', 'redis', 'dht'])
    const [file, redis, dht] = fakes
    Object.assign(redis as object, { hangs: true })
    Object.assign(file as object, { peers: [peer('a')] })
    Object.assign(dht as object, { peers: [peer('b')] })
    const running = lookups.run('work', true)
    await advance(10)
    expect(met.map(({ peerId }) => peerId)).toEqual(['a', 'b'])
    let over = false
    void running?.then(() => {
      over = true
    })
    await advance(DEFAULTS.lookupTimeoutMs - 20)
    expect(over).toBe(false)
    await advance(20)
    expect(over).toBe(true)
    expect(lookups.state('work')).toEqual({
      unreachable: [{ source: 'redis', reason: 'no answer in time' }],
      staleMs: undefined,
    })
  })

  it('dials a peer once that several sources name, and again only at addresses that are new', async () => {
    const { fakes, dialled, look } = looking(['file', 'dht'])
    const [file, dht] = fakes
    Object.assign(file as object, { peers: [peer('a', '/x'), peer('b', '/b')] })
    Object.assign(dht as object, { peers: [peer('a', '/x', '/y'), peer('b', '/b')] })
    await look()
    expect(dialled).toEqual([peer('a', '/x'), peer('a', '/y'), peer('b', '/b')])
  })

  it('lets nobody who names many, or names those who never answer, hold up what others name', async () => {
    const { fakes, met, lookups, advance } = looking(['dht'], ({ peerId }) => (peerId === 'good' ? 1 : undefined))
    const fake = (by: number) =>
      Array.from({ length: 60 }, (_, at) => ({ ...peer(`fake-${by}-${at}`), toldBy: `sybil-${by}` }))
    Object.assign(fakes[0] as object, {
      peers: [...Array.from({ length: 20 }, (_, by) => fake(by)).flat(), { ...peer('good'), toldBy: 'honest' }],
    })
    void lookups.run('work', true)
    await advance(DEFAULTS.lookupDialPatienceMs * 3)
    expect(met.map(({ peerId }) => peerId)).toEqual(['good'])
  })

  it('F-27 of 50 dead providers and a live one, the live one is reached within the look-up', async () => {
    const { fakes, met, look, clock } = looking(['dht'], ({ peerId }) => (peerId === 'live' ? 1 : undefined))
    const dead = Array.from({ length: 50 }, (_, at) => peer(`dead${at}`))
    Object.assign(fakes[0] as object, { peers: [...dead, peer('live')] })
    const before = clock.monotonic()
    await look()
    expect(met.map(({ peerId }) => peerId)).toEqual(['live'])
    expect(clock.monotonic() - before).toBeLessThanOrEqual(DEFAULTS.lookupTimeoutMs + 1)
  })

  it('bounds its dials, and stops at enough links', async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ ...peer(`p${at}`), toldBy: `t${at % 50}` }))
    const fine = looking(['dht'])
    Object.assign(fine.fakes[0] as object, { peers: many(1000) })
    await fine.look()
    expect(fine.met.length).toBeGreaterThanOrEqual(20)
    expect(fine.dialled.length).toBeLessThan(60)
    const deaf = looking(['dht'], () => undefined)
    Object.assign(deaf.fakes[0] as object, { peers: many(1000) })
    const before = deaf.clock.monotonic()
    await deaf.look()
    expect(deaf.clock.monotonic() - before).toBeLessThanOrEqual(DEFAULTS.lookupTimeoutMs + 1)
    expect(deaf.dialled.length).toBeLessThanOrEqual(256)
  })
})

describe('an answer that cannot be had anew', () => {
  it('is used up to 2 min old, marked stale, and not after', async () => {
    const { lookups, fakes, events, dialled, look, advance } = looking(['dht'])
    const [dht] = fakes as [(typeof fakes)[0] & object]
    dht.peers = [peer('a')]
    await look()
    dht.outage = 'nobody there'
    await advance(40_000)
    await look()
    expect(lookups.state('work').staleMs).toBeCloseTo(40_000, -2)
    expect(lookups.state('work').unreachable).toEqual([{ source: 'dht', reason: 'nobody there' }])
    expect(dialled).toHaveLength(2)
    await advance(DEFAULTS.lookupStaleMs - 40_000 - 10)
    await look()
    expect(lookups.state('work').staleMs).toBeGreaterThan(DEFAULTS.lookupStaleMs - 1000)
    await advance(1000)
    expect(lookups.state('work').staleMs).toBeUndefined()
    await look()
    expect(lookups.state('work')).toEqual({
      unreachable: [{ source: 'dht', reason: 'nobody there' }],
      staleMs: undefined,
    })
    expect(dialled).toHaveLength(3)
    expect(events.filter((text) => text.startsWith('stale'))).toHaveLength(2)
    dht.outage = undefined
    await look()
    expect(lookups.state('work')).toEqual({ unreachable: [], staleMs: undefined })
    expect(events.filter((text) => !text.startsWith('stale'))).toEqual([
      'unreachable dht: nobody there',
      'reachable dht',
    ])
  })

  it('is never an empty one', async () => {
    const { lookups, fakes, events, look } = looking(['dht'])
    const [dht] = fakes as [(typeof fakes)[0] & object]
    await look()
    expect(lookups.state('work')).toEqual({ unreachable: [], staleMs: undefined })
    dht.outage = 'nobody there'
    await look()
    expect(lookups.state('work').staleMs).toBeUndefined()
    dht.outage = undefined
    dht.peers = [peer('a')]
    await look()
    // It says now that nobody offers it: what it said before is no answer any more.
    dht.peers = []
    await look()
    dht.outage = 'nobody there'
    await look()
    expect(lookups.state('work').staleMs).toBeUndefined()
    expect(events.filter((text) => text.startsWith('stale'))).toEqual([])
  })

  it('is asked for at most once in 3 s while calls are served without it', async () => {
    const { fakes, look, advance } = looking(['dht'])
    const [dht] = fakes as [(typeof fakes)[0] & object]
    dht.outage = 'nobody there'
    for (let call = 0; call < 100; call++) {
      await look('work', false)
      await advance(100)
    }
    expect(dht.asked).toBe(4)
  })
})

describe('addresses of one peer', () => {
  it('are those of the first source that has others than were tried', async () => {
    const { lookups, fakes, until } = looking(['redis', 'file', 'dht'])
    const [redis, file, dht] = fakes
    Object.assign(redis as object, { hangs: true })
    Object.assign(file as object, { peers: [peer('a', '/old')] })
    Object.assign(dht as object, { peers: [peer('b', '/b'), peer('a', '/old', '/new')] })
    expect(await until(lookups.locate(peer('a', '/old'), 'work', undefined))).toEqual(['/old', '/new'])
    expect(await until(lookups.locate(peer('c', '/old'), 'work', undefined))).toEqual([])
  })
})
