import { randomBytes } from 'node:crypto'
import { createConnection, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Actor, actor } from '../actors.ts'
import { eventually, within } from '../eventually.ts'
import { tcpRelay } from '../handshake-attacks.ts'
import { bytesOf, handHandshake, helloOf, proofOf } from '../raw-handshake.ts'
import { dialLink } from '../raw-link.ts'
import { partOf, type RawStream, varint } from '../raw-stream.ts'
import { type Scene, scene } from '../scene.ts'
import { byTier, PATIENCE_MS, tier } from '../tier.ts'
import { echo, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')

/** So many peers with two streams each; the second is refused at once while the first is under way. */
const SLOW = Array.from({ length: byTier({ test: 10, ci: 80, long: 80 }) }, (_, index) => actor(`slow-${index}`))

/** Opens streams from all of them and does the same on each. */
async function stall(
  world: Scene,
  victim: Victim,
  begin: (stream: RawStream, self: Actor, index: number) => void,
): Promise<RawStream[]> {
  const streams: RawStream[] = []
  for (const [index, self] of SLOW.entries()) {
    const raw = await world.raw(self)
    await raw.connect(victim.address)
    const own = await Promise.all([raw.open(victim.address), raw.open(victim.address)])
    for (const stream of own) begin(stream, self, index)
    streams.push(...own)
  }
  return streams
}

/** An honest peer comes, is let in, and is served. */
async function served(world: Scene, victim: Victim, address = victim.address): Promise<void> {
  const since = performance.now()
  const good = await world.peer({
    as: honestKey,
    allow: [victimKey],
    bootstrap: [address],
    tuning: { reconnectMs: 50 },
  })
  await good.until('link.up', undefined, 20_000)
  expect(await within(20_000, 'a call of an honest peer', good.peer.call(echo, 'hello'))).toBe('hello')
  await good.peer.stop()
  expect(performance.now() - since).toBeLessThan(20_000)
}

describe('streams that stand still', () => {
  const hello = (self: Actor) => partOf(bytesOf(helloOf(self)))
  const stalls: readonly (readonly [string, (stream: RawStream, self: Actor, index: number) => void])[] = [
    ['saying nothing', () => undefined],
    ['with half a length', (stream) => stream.send(Buffer.from([0x80]))],
    ['with half a hello', (stream, self) => stream.send(hello(self).subarray(0, 100))],
    ['with a whole hello and nothing after it', (stream, self) => stream.send(hello(self))],
    [
      'with half a proof',
      (stream, self) => stream.send(Buffer.concat([hello(self), varint(200), Buffer.from('{"epoch":1')])),
    ],
  ]

  /** In every way at once; each by itself where there is more time. */
  const mixed: (typeof stalls)[0] = [
    'in every way',
    (stream, self, index) => stalls[index % stalls.length]?.[1](stream, self, index),
  ]

  it.each(tier === 'test' ? [mixed] : stalls)(
    '%s: each ends by itself, honest peers are served meanwhile and after',
    async (_, begin) => {
      const world = scene()
      const victim = await world.peer({
        as: victimKey,
        allow: [honestKey, ...SLOW],
        // Half of them fill all places, the others wait in front of the honest one.
        tuning: { handshakeTimeoutMs: 1000, callerGraceMs: 200, pendingHandshakes: SLOW.length / 2 },
      })
      const streams = await stall(world, victim, begin)
      await served(world, victim)
      await eventually(() => streams.every(({ ended }) => ended), 'all of them to end', 30_000)
      // Nothing is left of any of them.
      await eventually(() => victim.links === 0, 'the link of the honest peer to end')
      expect(victim.of('link.up').map(({ agentId }) => agentId)).toEqual(['honest'])
      expect(victim.of('handshake.refused').length).toBeGreaterThanOrEqual(streams.length)
      await served(world, victim)
      expect(world.escaped).toEqual([])
    },
  )

  it(
    'from one address: they fill the places of that address only, and others are served at once',
    async () => {
      const world = scene()
      const victim = await world.peer({
        as: victimKey,
        allow: [honestKey, ...SLOW],
        // New connections of one address are bounded by the same number.
        tuning: { handshakeTimeoutMs: 20_000, pendingHandshakesPerAddress: 8 },
      })
      const raws = []
      for (const self of SLOW.slice(0, 8)) raws.push(await world.raw(self))
      const streams = await Promise.all(raws.map((raw) => raw.open(victim.address)))
      for (const [index, stream] of streams.entries()) stream.send(hello(SLOW[index] as Actor))
      await Promise.all(streams.map((stream) => stream.part()))
      // All places of that address are taken: one more of it waits.
      const ninth = await eventually(
        async () => (await world.raw(SLOW[8] as Actor)).open(victim.address).catch(() => undefined),
        'a ninth connection',
      )
      ninth.send(hello(SLOW[8] as Actor))
      const elsewhere = await tcpRelay(victim.address, '127.0.0.2')
      onTestFinished(() => elsewhere.stop())
      await served(world, victim, elsewhere.address)
      // They have not timed out yet: it was not their end that made room.
      expect(streams.filter(({ ended }) => ended)).toEqual([])
      expect(ninth.waiting).toBe(0)
      expect(world.escaped).toEqual([])
    },
    PATIENCE_MS,
  )

  it('a refused stream that the other side never closes is reset', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey], tuning: { callerGraceMs: 200 } })
    const raw = await world.raw(hostileKey)
    const stream = await raw.open(victim.address)
    stream.send(hello(hostileKey))
    expect(await stream.told()).toEqual({ error_code: 'NOT_ALLOWED' })
    await eventually(() => stream.stream.status !== 'open', 'the reset')
    expect(
      raw.connections.flatMap(({ streams }) => streams.filter(({ protocol }) => protocol.includes('hermes/link'))),
    ).toEqual([])
  })

  it('the end of a refused handshake does not cut a later one of the same peer', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey], tuning: { callerGraceMs: 200 } })
    const raw = await world.raw(hostileKey)
    const refusedOne = await raw.open(victim.address)
    refusedOne.send(partOf(bytesOf(helloOf(hostileKey, { agent_id: 'somebody' }))))
    expect(await refusedOne.told()).toEqual({ error_code: 'NOT_ALLOWED' })
    await raw.connect(victim.address)
    const stream = await raw.open(victim.address)
    const hand = handHandshake(stream, hostileKey, { initiator: raw.peerId, responder: victim.self.peerId })
    hand.send(helloOf(hostileKey))
    await hand.read()
    // Under way while the first one is cleared away.
    await eventually(() => refusedOne.stream.status !== 'open', 'the end of the first one')
    hand.sendSigned('proof', proofOf())
    expect((await hand.readSigned()).body).toHaveProperty('link_id')
    expect(await victim.until('link.up')).toMatchObject({ agentId: 'hostile' })
  })

  it('connections that say nothing at all do not keep an honest peer out', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey] })
    const port = Number(victim.address.split('/')[4])
    const sockets = Array.from({ length: byTier({ test: 48, ci: 60, long: 60 }) }, (_, index) => {
      const socket: Socket = createConnection(port, '127.0.0.1')
      socket.on('error', () => undefined)
      if (index % 3 === 0) socket.write(randomBytes(20))
      return socket
    })
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    await served(world, victim)
    expect(world.escaped).toEqual([])
  })

  it('connections of strangers do not keep an admitted peer out when all places are taken', async () => {
    const world = scene()
    const victim = await world.peer({
      as: victimKey,
      allow: [honestKey],
      tuning: { maxConnections: 10, callerGraceMs: 200 },
    })
    for (let i = 0; i < 12; i++) {
      const raw = await world.raw(actor(`stranger-${i}`))
      await raw.connect(victim.address).catch(() => undefined)
    }
    await served(world, victim)
  })
})

describe('links that stand still', () => {
  it('a frame that never ends: probed, then destroyed, with everybody else served', async () => {
    const world = scene()
    const victim = await world.peer({
      as: victimKey,
      allow: [hostileKey, honestKey],
      tuning: { idleSilenceMs: 400, silenceMs: 400, probeMs: 200, tickMs: 50 },
    })
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, { silent: true })
    const frame = link.craft({ target_capability: 'echo', payload: { input: 'x'.repeat(10_000) } }).frame
    // One byte after the other, so that something always moves.
    let at = 0
    const drip = setInterval(() => link.stream.send(frame.subarray(at, ++at)), 20)
    onTestFinished(() => clearInterval(drip))
    await served(world, victim)
    const down = await victim.until('link.down', ({ agentId }) => agentId === 'hostile')
    expect(down).toMatchObject({ code: 'PEER_UNREACHABLE', last: true })
    expect(victim.of('link.probe').filter(({ agentId }) => agentId === 'hostile')).toHaveLength(3)
    expect(at).toBeLessThan(frame.length)
    expect(world.escaped).toEqual([])
  })

  it('a handshake that is drawn out byte by byte ends at its own limit', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey], tuning: { handshakeTimeoutMs: 500 } })
    const raw = await world.raw(hostileKey)
    const stream = await raw.open(victim.address)
    const hello = partOf(bytesOf(helloOf(hostileKey)))
    let at = 0
    const drip = setInterval(() => stream.send(hello.subarray(at, ++at)), 5)
    onTestFinished(() => clearInterval(drip))
    expect(await victim.until('handshake.refused')).toMatchObject({ code: 'HANDSHAKE_REFUSED' })
    await stream.untilEnded()
    expect(victim.links).toBe(0)
  })
})
