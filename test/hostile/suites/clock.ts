import { describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { challengeOf, sayHello, whenDialled } from '../handshake-attacks.ts'
import { handHandshake, helloOf, jsonOf } from '../raw-handshake.ts'
import { dialLink } from '../raw-link.ts'
import { type Scene, scene } from '../scene.ts'
import { peerOver, skewedBy } from '../seams.ts'
import { echo, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')
const HOUR = 3_600_000

/** A sound peer whose wall clock is off; its waits for a reconnect are as long as they may be, so that they can be foretold. */
function skewed(world: Scene, ms: number, options: Partial<Parameters<Scene['peer']>[0]> = {}): Promise<Victim> {
  return world.peer({
    as: honestKey,
    allow: [victimKey],
    make: peerOver((seams) => skewedBy(ms)({ ...seams, random: { ...seams.random, next: () => 0.999 } })),
    ...options,
  })
}

const reasons = (peer: Victim) => peer.of('handshake.refused').map(({ reason }) => reason)

describe('F-05 clock difference reported as a bad credential', () => {
  it.each([800, -800, 90_000, -90_000])(
    'a clock that is off by %i ms is accepted in both directions, and so are its calls',
    async (ms) => {
      const world = scene()
      const victim = await world.peer({ as: victimKey, allow: [honestKey] })
      const off = await skewed(world, ms, { bootstrap: [victim.address] })
      const { offsetMs } = await victim.until('link.up')
      expect(Math.abs(offsetMs - ms)).toBeLessThan(2000)
      expect(await off.peer.call(echo, 'there')).toBe('there')
      expect(await victim.peer.call(echo, 'and back', { agent: 'honest' })).toBe('and back')
      const heard: unknown[] = []
      victim.peer.onEvent('tick', ({ data }) => heard.push(data))
      await off.peer.emit({ agent: 'victim', event: 'tick' }, 1)
      await eventually(() => heard.length === 1, 'the event')
      for (const peer of [victim, off]) {
        expect(peer.of('envelope.refused')).toEqual([])
        expect(peer.of('presence.refused')).toEqual([])
        expect(peer.of('handshake.refused')).toEqual([])
      }
      await off.peer.stop()
      // And when the other one dials.
      const dialled = await skewed(world, ms)
      expect(await victim.peer.connect(dialled.address)).toBe('honest')
      expect(await victim.peer.call(echo, 'there', { agent: 'honest' })).toBe('there')
      expect(await dialled.peer.call(echo, 'and back')).toBe('and back')
      expect(victim.of('envelope.refused')).toEqual([])
    },
  )

  it.each([HOUR, -HOUR])(
    'a clock that is off by %i ms is refused with CLOCK_SKEW and the offset, on both sides',
    async (ms) => {
      const world = scene()
      const victim = await world.peer({ as: victimKey, allow: [honestKey] })
      const off = await skewed(world, ms)
      const near = (value: unknown, wanted: number) => Math.abs((value as number) - wanted) < 5000
      await expect(off.peer.connect(victim.address)).rejects.toSatisfy(
        (error: { code: string; details: { offset_ms: number }; message: string }) =>
          error.code === 'CLOCK_SKEW' &&
          near(error.details.offset_ms, ms) &&
          error.message.includes(String(error.details.offset_ms)),
      )
      await expect(victim.peer.connect(off.address)).rejects.toSatisfy(
        (error: { code: string; details: { offset_ms: number } }) =>
          error.code === 'CLOCK_SKEW' && near(Math.abs(error.details.offset_ms), HOUR),
      )
      for (const peer of [victim, off]) {
        await eventually(() => peer.of('handshake.refused').length === 2, 'two refusals')
        expect(peer.of('handshake.refused').map(({ code }) => code)).toEqual(['CLOCK_SKEW', 'CLOCK_SKEW'])
        expect(reasons(peer).join()).not.toMatch(/signature|signed|key|identity/i)
        for (const reason of reasons(peer)) expect(reason).toMatch(/clock/)
        expect(peer.links).toBe(0)
      }
    },
  )

  it('it does not come back again and again: each wait is twice as long, and the refusal stays the same', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey] })
    const off = await skewed(world, HOUR, { bootstrap: [victim.address] })
    const waits = await eventually(() => {
      const all = off.of('link.reconnect').map(({ inMs }) => inMs)
      return all.length >= 4 ? all.slice(0, 4) : undefined
    }, 'four waits')
    expect(waits).toEqual([200, 400, 799, 1598])
    expect(victim.of('handshake.refused').length).toBeLessThanOrEqual(5)
    expect(new Set(victim.of('handshake.refused').map(({ code }) => code))).toEqual(new Set(['CLOCK_SKEW']))
    // It stays who it is: no new key, no other name.
    expect(new Set(victim.of('handshake.refused').map(({ peerId }) => peerId))).toEqual(new Set([honestKey.peerId]))
  })

  it('at its limit of ten minutes', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    const attack = { victim, raw: await world.raw(hostileKey), self: hostileKey, other: honestKey }
    for (const ms of [660_000, -660_000]) {
      expect(await sayHello(attack, helloOf(hostileKey, { time: Date.now() + ms }))).toEqual({
        linked: false,
        code: 'CLOCK_SKEW',
        told: 'CLOCK_SKEW',
      })
      expect(
        await whenDialled(attack, (hand) => hand.send(challengeOf(hostileKey, { time: Date.now() + ms }))),
      ).toEqual({
        linked: false,
        code: 'CLOCK_SKEW',
        told: 'CLOCK_SKEW',
      })
    }
    for (const ms of [540_000, -540_000]) {
      victim.mark()
      const link = await dialLink(attack.raw, hostileKey, victim.address, { hello: { time: Date.now() + ms } })
      const said = { timestamp: Date.now() + ms, expires_at: Date.now() + ms + 10_000 }
      expect((await link.answerTo(link.request('echo', ms, said))).payload).toMatchObject({ output: ms })
      link.reset()
      await victim.until('link.down')
    }
  })

  it('a stranger with a wrong clock learns that it is a stranger, not what the time is', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey] })
    const attack = { victim, raw: await world.raw(hostileKey), self: hostileKey, other: honestKey }
    expect(await sayHello(attack, helloOf(hostileKey, { time: 1 }))).toEqual({
      linked: false,
      code: 'NOT_ALLOWED',
      told: 'NOT_ALLOWED',
    })
  })

  it('a heartbeat cannot move the clock of its sender further than a handshake can', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey, honestKey] })
    for (const ms of [HOUR, -HOUR]) {
      victim.mark()
      const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address)
      link.send({ message_type: 'heartbeat', payload: { time: Date.now() + ms, reply: false, received: 0 } })
      // What is said an hour from now must not be taken because of it: the link is cut, or the beat is not believed.
      link.request('echo', ms, { timestamp: Date.now() + ms, expires_at: Date.now() + ms + 5000 })
      const end = await eventually(
        () => victim.of('link.down')[0] ?? victim.of('envelope.refused')[0] ?? victim.of('handler.started')[0],
        'the end of it',
      )
      expect(['link.down', 'envelope.refused']).toContain(end.type)
      expect(victim.served).toEqual([])
      link.reset()
      await victim.until('link.down')
    }
  })

  it('the freshness of a handshake rests on the nonce: an old hello is of no use with any clock', async () => {
    const world = scene()
    // Its clock stands still, as that of a machine that was restored from a snapshot.
    const stopped = Date.now()
    const victim = await world.peer({
      as: victimKey,
      allow: [hostileKey],
      make: peerOver((seams) => ({ ...seams, clock: { ...seams.clock, now: () => stopped } })),
    })
    const raw = await world.raw(hostileKey)
    const stream = await raw.open(victim.address)
    const hand = handHandshake(stream, hostileKey, { initiator: raw.peerId, responder: victim.self.peerId })
    hand.send(helloOf(hostileKey, { time: stopped }))
    const first = await hand.read()
    stream.reset()
    await victim.until('handshake.refused')
    victim.mark()
    const again = await raw.open(victim.address)
    again.send(hand.binding.messages[0] as Uint8Array)
    const second = jsonOf(await again.part())
    expect(second.nonce).not.toBe(first.nonce)
    again.reset()
  })
})
