import { describe, expect, it } from 'vitest'
import { pattern } from '../../src/compliance/recorder.ts'
import { FAULT_KINDS } from '../../src/network/hits.ts'
import { ECHO, patient, worldOf } from '../support/world.ts'

const pair = async (names = 'ab', settings = {}) => {
  const all = await worldOf(names, { settings })
  const [a, b] = [all.peer('a'), all.peer('b')]
  return { ...all, a, b, ...(await all.channel(a, b)) }
}

describe('a cut', () => {
  it('breaks the connections between two peers off, and no others', async () => {
    const { world, a, b, peer, channel, here, there, timeline, events } = await pair('abc')
    const other = await channel(a, peer('c'))
    world.faults.cut(b.peerId, a.peerId, { afterBytes: 10 })
    here.channel.send(pattern(4, 1))
    await timeline.advance('1s')
    expect([there.size, here.closings, world.faults.hits.cut]).toEqual([4, [], 0])
    there.channel.send(pattern(100, 2))
    await timeline.advance('1s')
    expect([here.size, here.closings.length, there.closings.length, world.faults.hits.cut]).toEqual([6, 1, 1, 1])
    expect(events).toContain('a disconnected b')
    expect(other.here.closings).toEqual([])
    await channel(a, b)
    await timeline.advance('1s')
    expect(world.connections(a.peerId, b.peerId)).toBe(1)
  })

  it('comes after a number of bytes drawn from the seed when none is given', async () => {
    const sizes = await Promise.all(
      ['1', '1', '2', '3'].map(async (seed) => {
        const { world, channel, peer, timeline } = await worldOf('ab', { seed })
        const { here, there } = await channel(peer('a'), peer('b'))
        world.faults.cut(peer('a').peerId, peer('b').peerId)
        here.channel.send(pattern(10_000, 1))
        await timeline.advance('1s')
        return there.size
      }),
    )
    expect(sizes[0]).toBe(sizes[1])
    expect(new Set(sizes).size).toBe(3)
  })
})

describe('two peers that are apart', () => {
  it('reach others, but not each other, until the network heals', async () => {
    const { world, a, b, peer, channel, here, there, timeline } = await pair('abc')
    world.faults.apart(b.peerId, a.peerId)
    here.channel.send(pattern(4, 1))
    const [toC, toB] = [await channel(a, peer('c')), await channel(b, peer('c'))]
    toC.here.channel.send(pattern(3, 1))
    toB.here.channel.send(pattern(2, 1))
    await timeline.advance('1s')
    expect([there.size, toC.there.size, toB.there.size]).toEqual([0, 3, 2])
    // A partition of others does not take it away.
    world.faults.partition([])
    await timeline.advance('1s')
    expect(there.size).toBe(0)
    world.faults.heal()
    await timeline.advance('1s')
    expect(there.size).toBe(4)
  })
})

describe('a delay', () => {
  it('holds everything between two peers up for a time, in order, and then no more', async () => {
    const { world, a, b, here, there, timeline } = await pair()
    world.faults.delay(a.peerId, b.peerId, { extraMs: 500, forMs: 100 })
    expect(world.faults.hits.delay).toBe(0)
    here.channel.send(pattern(5, 1))
    await timeline.advance(200)
    here.channel.send(pattern(5, 2))
    await timeline.advance(290)
    expect(there.size).toBe(0)
    await timeline.advance(20)
    expect(Buffer.compare(there.bytes(), Buffer.concat([pattern(5, 1), pattern(5, 2)]))).toBe(0)
    expect(world.faults.hits.delay).toBe(1)
    there.channel.send(pattern(5, 3))
    await timeline.advance(3)
    expect(here.size).toBe(5)
  })
})

describe('a half-open connection', () => {
  it('swallows bytes both ways and tells nobody, until one side hangs up; a new one works', async () => {
    const { world, a, b, here, there, timeline, channel } = await pair()
    here.channel.send(pattern(5, 0))
    expect(world.faults.halfOpen(a.peerId, b.peerId)).toBe(1)
    expect(world.faults.hits.halfOpen).toBe(1)
    here.channel.send(pattern(5, 1))
    there.channel.send(pattern(5, 2))
    await timeline.advance('1h')
    expect([here.size, there.size, here.closings, there.closings]).toEqual([0, 0, [], []])
    const silent = a.open({ peerId: b.peerId, addresses: [] }, ECHO, { signal: AbortSignal.abort(new Error('x')) })
    await expect(silent).rejects.toThrow('x')
    await a.hangUp(b.peerId)
    await timeline.advance('1h')
    expect([here.closings.length, there.closings.length]).toEqual([1, 0])
    const renewed = await channel(a, b)
    renewed.here.channel.send(pattern(5, 3))
    await timeline.advance('1s')
    expect([renewed.there.size, world.faults.hits.halfOpen]).toEqual([5, 1])
  })

  it('does not count before anything was swallowed', async () => {
    const { world, a, b, timeline } = await pair()
    world.faults.halfOpen(a.peerId, b.peerId)
    await timeline.advance('1m')
    expect(world.faults.hits.halfOpen).toBe(0)
  })
})

describe('a partition', () => {
  it('keeps back what is sent until it is healed, loses nothing, and leaves each side whole', async () => {
    const { world, a, b, peer, here, there, timeline, channel } = await pair('abcd')
    const inside = await channel(a, peer('c'))
    here.channel.send(pattern(10, 1))
    world.faults.partition([[a.peerId, peer('c').peerId]])
    expect(world.faults.hits.partition).toBe(1)
    there.channel.send(pattern(10, 2))
    inside.here.channel.send(pattern(10, 3))
    await timeline.advance('1m')
    expect([here.size, there.size, inside.there.size]).toEqual([0, 0, 10])
    await channel(b, peer('d'))
    world.faults.heal()
    await timeline.advance('1s')
    expect([here.size, there.size, here.closings, world.faults.hits.partition]).toEqual([10, 10, [], 1])
  })

  it('breaks a connection that stays silent too long, at both ends', async () => {
    const { world, a, here, there, timeline, events } = await pair('ab', { brokenAfterMs: 60_000 })
    world.faults.partition([[a.peerId]])
    await timeline.advance('59s')
    expect(here.closings).toEqual([])
    await timeline.advance('2s')
    expect([here.closings.length, there.closings.length]).toEqual([1, 1])
    expect(events.filter((event) => event.includes('disconnected'))).toHaveLength(2)
    world.faults.heal()
    await timeline.advance('5m')
    expect(timeline.pending).toBe(0)
  })
})

describe('a stalled reader', () => {
  it('holds its senders back by their windows, goes on sending itself, and reads everything later', async () => {
    const { world, b, here, there, timeline } = await pair()
    world.faults.stall(b.peerId, { forMs: 10_000 })
    let sent = 0
    while (here.channel.send(pattern(10_000, sent))) sent += 10_000
    sent += 10_000
    expect(world.faults.hits.stall).toBe(1)
    there.channel.send(pattern(5, 1))
    await timeline.advance('9s')
    expect([there.size, here.size, here.drains]).toEqual([0, 5, 0])
    await timeline.advance('2s')
    expect([there.size, here.drains]).toEqual([sent, 1])
  })

  it('answers no dial, and can be woken earlier', async () => {
    const { world, peer, channel, timeline } = await worldOf('ab', { settings: { dialTimeoutMs: 1_000 } })
    const [a, b] = [peer('a'), peer('b')]
    const wake = world.faults.stall(b.peerId, { forMs: 60_000 })
    const opening = a.open({ peerId: b.peerId, addresses: b.addresses() }, ECHO, patient)
    await expect(timeline.runUntil(opening)).rejects.toMatchObject({ details: { tried: [{ reason: 'timeout' }] } })
    wake()
    wake()
    await channel(a, b)
  })
})

describe('a crash', () => {
  it('resets the other ends, and nothing of the dead is called any more', async () => {
    const { world, a, b, here, there, timeline, events, idOf } = await pair()
    const after: unknown[] = []
    b.subscribe('news', () => {
      after.push('gossip')
      return 'accept'
    })
    // Has arrived and is not read when it dies; more is on the way then.
    there.channel.pause()
    here.channel.send(pattern(100, 1))
    await timeline.advance(50)
    const late = b.open({ peerId: idOf('nobody'), addresses: ['/ip4/127.0.0.1/tcp/1'] }, ECHO, patient)
    late.then(
      () => after.push('opened'),
      () => after.push('refused'),
    )
    const held = there.channel.send(pattern(3_000_000, 1))
    void there.channel.close().then(() => after.push('closed'))
    here.channel.send(pattern(100, 1))
    events.length = 0
    world.faults.crash(b.peerId)
    for (const call of [
      b.open({ peerId: a.peerId, addresses: a.addresses() }, ECHO, patient),
      b.publish('news', new Uint8Array(1)),
      b.provide(new Uint8Array(4), patient),
      b.findProviders(new Uint8Array(4), patient)[Symbol.asyncIterator]().next(),
    ]) {
      call.then(
        () => after.push('answered'),
        () => after.push('failed'),
      )
    }
    there.channel.resume()
    await timeline.advance('1m')
    expect(after).toEqual([])
    expect([held, there.channel.send(pattern(1, 1)), there.size, there.closings]).toEqual([false, false, 0, []])
    expect(here.closings).toEqual([expect.any(Error)])
    expect(events).toEqual(['a disconnected b'])
    expect(world.faults.hits.crash).toBe(1)
    await b.stop()
    await b.hangUp(a.peerId)
    expect(timeline.pending).toBe(0)
  })

  it('lets what was on the way arrive first', async () => {
    const { world, b, here, there, timeline } = await pair()
    there.channel.send(pattern(500, 1))
    world.faults.crash(b.peerId)
    await timeline.advance('1s')
    expect([here.size, here.closings.length]).toEqual([500, 1])
  })

  it('frees the id and the address for a next life; the old address is refused', async () => {
    const { world, a, b, start, channel, timeline } = await pair()
    const old = b.addresses()
    world.faults.crash(b.peerId)
    const opening = a.open({ peerId: b.peerId, addresses: old }, ECHO, patient)
    await expect(timeline.runUntil(opening)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    const renewed = await start('b')
    expect(renewed.addresses()).not.toEqual(old)
    const { here, there } = await channel(a, renewed)
    here.channel.send(pattern(5, 1))
    await timeline.advance('1s')
    expect(there.size).toBe(5)
  })

  it('stops a dial of the dead', async () => {
    const { world, peer, timeline, events } = await worldOf('ab')
    void peer('a').open({ addresses: peer('b').addresses() }, ECHO, patient)
    timeline.schedule(0.1, () => world.faults.crash(peer('a').peerId))
    await timeline.advance('1m')
    expect(events).toEqual([])
  })
})

it('counts each kind from zero', async () => {
  const { world } = await worldOf('a')
  expect(world.faults.hits).toEqual(Object.fromEntries(FAULT_KINDS.map((kind) => [kind, 0])))
})
