import { HermesError } from '@hermes-peer/protocol'
import { manualClock, seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../../src/defaults.ts'
import { createSourceHealth } from '../../../src/directory/sources/health.ts'
import { createRegistrar } from '../../../src/directory/sources/registrar.ts'
import type { DirectorySource, Registration } from '../../../src/directory/sources/source.ts'
import { createTelemetry } from '../../../src/telemetry/telemetry.ts'

/** A source that notes what it is told, and fails or hangs when the test says so. */
function noting(name: string, leased = true) {
  const state = { log: [] as string[], down: false, hangs: false, at: [] as number[] }
  const clock = { now: () => 0 }
  const told = async (what: string, signal: AbortSignal): Promise<void> => {
    state.log.push(what)
    state.at.push(clock.now())
    if (state.hangs) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    if (state.down) throw new HermesError('DIRECTORY_UNREACHABLE', { message: 'it is down' })
  }
  const source = {
    name,
    leased,
    register: ({ capabilities }: Registration, { signal }: { signal: AbortSignal }) =>
      told(`register ${capabilities.join()}`, signal),
    renew: ({ signal }: { signal: AbortSignal }) => told('renew', signal),
    unregister: ({ signal }: { signal: AbortSignal }) => told('unregister', signal),
  } as unknown as DirectorySource
  return { source, state, clock }
}

function registering(...sources: ReturnType<typeof noting>[]) {
  const clock = manualClock()
  for (const one of sources) one.clock.now = () => clock.monotonic()
  const telemetry = createTelemetry({ clock })
  const events: string[] = []
  telemetry.events.onAny(({ type }) => events.push(type))
  const offered = { capabilities: ['work'] }
  const registrar = createRegistrar({
    sources: sources.map(({ source }) => source),
    health: createSourceHealth(telemetry),
    clock,
    random: seededRandom(1),
    tunables: DEFAULTS,
    own: () => ({ agentId: 'a', peerId: 'p', addresses: ['/x'], capabilities: offered.capabilities }),
  })
  return { registrar, clock, events, offered, advance: (ms: number) => clock.timeline.advance(ms) }
}

describe('a registration', () => {
  it('is renewed each third of its lease, and made anew when something changes', async () => {
    const redis = noting('redis')
    const { registrar, advance, offered } = registering(redis)
    registrar.start()
    await advance(DEFAULTS.directoryLeaseMs)
    expect(redis.state.log).toEqual(['register work', 'renew', 'renew', 'renew'])
    offered.capabilities = ['work', 'more']
    registrar.changed()
    registrar.changed()
    await advance(0)
    expect(redis.state.log.slice(4)).toEqual(['register work,more', 'register work,more'])
  })

  it('is not made by a peer that offers nothing yet', async () => {
    const redis = noting('redis')
    const { registrar, advance, offered } = registering(redis)
    offered.capabilities = []
    registrar.start()
    await advance(300_000)
    expect(redis.state.log).toEqual([])
    await registrar.withdraw()
    expect(redis.state.log).toEqual([])
  })

  it('is left alone where the source keeps it up by itself', async () => {
    const dht = noting('dht', false)
    const { registrar, advance } = registering(dht)
    registrar.start()
    await advance(300_000)
    expect(dht.state.log).toEqual(['register work'])
  })

  it('is tried again with growing waits, never further apart than renewals, and told once of each change', async () => {
    const redis = noting('redis')
    const { registrar, advance, events } = registering(redis)
    redis.state.down = true
    registrar.start()
    await advance(600_000)
    const tries = redis.state.at.length
    expect(tries).toBeGreaterThan(600_000 / (DEFAULTS.directoryLeaseMs / 3))
    expect(tries).toBeLessThan(120)
    const gaps = redis.state.at.slice(1).map((at, index) => at - (redis.state.at[index] as number))
    expect(Math.max(...gaps)).toBeLessThanOrEqual(DEFAULTS.directoryLeaseMs / 3)
    redis.state.down = false
    await advance(DEFAULTS.directoryLeaseMs / 3)
    expect(redis.state.log.filter((what) => what === 'renew')).toEqual([])
    await advance(DEFAULTS.directoryLeaseMs / 3)
    expect(redis.state.log.at(-1)).toBe('renew')
    expect(events).toEqual(['directory.unreachable', 'directory.reachable'])
  })

  it('at one source that hangs or fails holds up no other one', async () => {
    const [stuck, down, good] = [noting('stuck'), noting('down'), noting('good')]
    stuck.state.hangs = true
    down.state.down = true
    const { registrar, advance } = registering(stuck, down, good)
    registrar.start()
    await advance(DEFAULTS.directoryLeaseMs)
    expect(good.state.log).toEqual(['register work', 'renew', 'renew', 'renew'])
  })

  it('is taken back once, in half a second at most, also while it is being made', async () => {
    const [stuck, good] = [noting('stuck'), noting('good')]
    const { registrar, advance, clock } = registering(stuck, good)
    registrar.start()
    await advance(1)
    stuck.state.hangs = true
    registrar.changed()
    await advance(1)
    const before = clock.monotonic()
    await clock.timeline.runUntil(Promise.all([registrar.withdraw(), registrar.withdraw()]))
    expect(clock.monotonic() - before).toBeLessThanOrEqual(500)
    expect(good.state.log.filter((what) => what === 'unregister')).toHaveLength(1)
    await advance(600_000)
    expect(good.state.log.at(-1)).toBe('unregister')
    expect(stuck.state.log.at(-1)).toBe('unregister')
  })
})
