import { describe, expect, it } from 'vitest'
import { eventually, within } from '../eventually.ts'
import { hostileKey, isCancel, isWork, otherKey, provided, victimKey, watched } from '../provider.ts'
import type { Heard } from '../raw-link.ts'
import { type Scene, scene } from '../scene.ts'
import { echo, slow, type Victim } from '../victim.ts'

describe('F-12 answer that arrives after the caller gave up', () => {
  it('is dropped and counted; the link and all other calls go on', async () => {
    const world = scene()
    const { victim, link } = await provided(world)
    const given: Heard[] = []
    const late = watched(victim.peer.callDynamic('work', 'late', { timeoutMs: 300 }))
    given.push(await link.next(isWork))
    const stop = new AbortController()
    const cancelled = watched(victim.peer.callDynamic('work', 'cancelled', { timeoutMs: 30_000, signal: stop.signal }))
    given.push(await link.next(isWork))
    const healthy = Array.from({ length: 10 }, (_, index) =>
      victim.peer.callDynamic('work', index, { timeoutMs: 30_000 }),
    )
    for (let i = 0; i < 10; i++) {
      const one = await link.next(isWork)
      link.answer(one, one.payload.input)
    }
    expect(await Promise.all(healthy)).toEqual(Array.from({ length: 10 }, (_, index) => index))

    await late.promise
    expect(late.error).toMatchObject({ code: 'TIMEOUT', messageId: given[0]?.header.message_id })
    stop.abort()
    await cancelled.promise
    expect(cancelled.error).toMatchObject({ code: 'CANCELLED' })
    // The other side is told to stop, in both cases.
    for (const one of given) {
      const { payload } = await link.next(isCancel)
      expect(payload).toMatchObject({ message_id: one.header.message_id })
    }

    victim.mark()
    for (const one of given) {
      link.answer(one, 'too late')
      link.answer(one, 'too late')
    }
    await eventually(() => victim.of('answer.late').length === 4, 'four late answers')
    const more = Array.from({ length: 5 }, (_, index) => victim.peer.callDynamic('work', index, { timeoutMs: 30_000 }))
    for (let i = 0; i < 5; i++) {
      const one = await link.next(isWork)
      link.answer(one, one.payload.input)
    }
    expect(await Promise.all(more)).toEqual([0, 1, 2, 3, 4])
    expect(link.ended).toBe(false)
    expect(victim.of('link.down')).toEqual([])
    expect(victim.peer.balance()).toMatchObject({ calls: 17, succeeded: 15, failed: 2, inFlight: 0 })
    expect(world.escaped).toEqual([])
  })

  it('gives its place back: as many more calls as may be in flight are sent and answered', async () => {
    const world = scene()
    const { victim, link } = await provided(world, [hostileKey], {
      // Calls fail here on purpose, more often than the breaker would look on.
      tuning: { inFlightPerPeer: 4, breakerRow: 1e9, breakerLeast: 1e9 },
    })
    for (let round = 0; round < 3; round++) {
      const stop = new AbortController()
      const late = Array.from({ length: 2 }, () => watched(victim.peer.callDynamic('work', 'late', { timeoutMs: 200 })))
      const cancelled = Array.from({ length: 2 }, () =>
        watched(victim.peer.callDynamic('work', 'cancelled', { timeoutMs: 30_000, signal: stop.signal })),
      )
      for (let i = 0; i < 4; i++) await link.next(isWork)
      stop.abort()
      await within(5000, 'their ends', Promise.all([...late, ...cancelled].map(({ promise }) => promise)))
    }
    const [candidate] = await victim.peer.find({ agent: 'hostile', capability: 'work' })
    expect(candidate?.reasons.join()).not.toContain('in flight')
    const healthy = Array.from({ length: 4 }, (_, index) => victim.peer.callDynamic('work', index, { timeoutMs: 5000 }))
    for (let i = 0; i < 4; i++) {
      const one = await link.next(isWork, 5000)
      link.answer(one, one.payload.input)
    }
    expect(await Promise.all(healthy)).toEqual([0, 1, 2, 3])
  })

  it('also between two real peers: a slow handler is told to stop at the deadline', async () => {
    const world = scene()
    const reasons: string[] = []
    const server = await startSlow(world, reasons)
    const client = await world.peer({ as: otherKey, allow: [victimKey], bootstrap: [server.address] })
    const call = client.peer.call(slow, null, { timeoutMs: 300 })
    const healthy = Promise.all(Array.from({ length: 10 }, (_, index) => client.peer.call(echo, index)))
    await expect(call).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(await healthy).toHaveLength(10)
    await eventually(() => reasons.length === 1, 'the signal of the handler', 5000)
    expect(await Promise.all([1, 2, 3, 4, 5].map((value) => client.peer.call(echo, value)))).toEqual([1, 2, 3, 4, 5])
    expect(client.of('link.down')).toEqual([])
    expect(world.escaped).toEqual([])
  })

  async function startSlow(world: Scene, reasons: string[]): Promise<Victim> {
    return world.peer({
      as: victimKey,
      allow: [otherKey],
      prepare: (peer) =>
        peer.provide(
          slow,
          (_, { signal }) =>
            new Promise((resolve) =>
              signal.addEventListener('abort', () => {
                reasons.push((signal.reason as { code: string }).code)
                // Answers all the same.
                resolve('done')
              }),
            ),
        ),
    })
  }
})
