import { describe, expect, it } from 'vitest'
import { ECHO, patient, worldOf } from '../support/world.ts'

describe('start', () => {
  it('listens on loopback at a free port by default, and where it is told', async () => {
    const { peer, start } = await worldOf('ab')
    const loopback = (id: string) => new RegExp(`^/ip4/127\\.0\\.0\\.1/tcp/[1-9]\\d*/p2p/${id}$`)
    expect(peer('a').addresses()).toEqual([expect.stringMatching(loopback(peer('a').peerId))])
    expect(peer('a').addresses()[0]?.split('/')[4]).not.toBe(peer('b').addresses()[0]?.split('/')[4])
    const listen = ['/ip4/10.0.0.3/tcp/4001', '/memory/c']
    const c = await start('c', { listen })
    expect(c.addresses()).toEqual(listen.map((address) => `${address}/p2p/${c.peerId}`))
  })

  it('is seen at the address it calls from', async () => {
    const { start, channel, peer } = await worldOf('a')
    for (const [name, listen] of [
      ['b', '/ip4/10.0.0.3/tcp/4001'],
      ['c', '/memory/c'],
    ] as const) {
      const { there } = await channel(await start(name, { listen: [listen] }), peer('a'))
      expect(there.channel.remoteAddress).toMatch(name === 'b' ? /^\/ip4\/10\.0\.0\.3\/tcp\/\d+\// : /^\/memory\/\d+\//)
    }
  })

  it('names the address that is taken or is none', async () => {
    const { start } = await worldOf('')
    await start('a', { listen: ['/ip4/127.0.0.1/tcp/4001'] })
    const taken = start('b', { listen: ['/ip4/127.0.0.1/tcp/4001'] })
    await expect(taken).rejects.toMatchObject({
      code: 'ADDRESS_IN_USE',
      details: { address: '/ip4/127.0.0.1/tcp/4001' },
    })
    await expect(start('c', { listen: ['localhost:4001'] })).rejects.toMatchObject({ code: 'INVALID_ADDRESS' })
    await expect(start('d', { bootstrap: ['localhost:4001'] })).rejects.toMatchObject({ code: 'INVALID_ADDRESS' })
  })

  it('comes before everything else, and stop after it', async () => {
    const { world, idOf, peer, timeline } = await worldOf('b')
    const a = world.network({ peerId: idOf('a') })
    expect(a.addresses()).toEqual([])
    const target = { peerId: peer('b').peerId, addresses: peer('b').addresses() }
    await expect(a.open(target, ECHO, patient)).rejects.toMatchObject({ code: 'NOT_STARTED' })
    await expect(a.publish('news', new Uint8Array(1))).rejects.toMatchObject({ code: 'NOT_STARTED' })
    await a.start()
    await a.start()
    await timeline.runUntil(a.open(target, ECHO, patient))
    await a.stop()
    await a.stop()
    expect(a.addresses()).toEqual([])
    await expect(a.open(target, ECHO, patient)).rejects.toMatchObject({ code: 'STOPPED' })
    await expect(a.provide(new Uint8Array(4), patient)).rejects.toMatchObject({ code: 'STOPPED' })
    await expect(a.start()).rejects.toMatchObject({ code: 'STOPPED' })
  })
})

describe('stop', () => {
  it('ends channels on both sides, ends what is pending, and frees the address', async () => {
    const { peer, channel, timeline, events, start, world } = await worldOf('ab', {
      settings: { dialTimeoutMs: 10_000 },
    })
    const [a, b] = [peer('a'), peer('b')]
    const address = b.addresses()[0]?.split('/p2p/')[0] ?? ''
    const { here, there } = await channel(a, b)
    world.faults.partition([[b.peerId]])
    const dialling = b.open({ addresses: a.addresses() }, ECHO, patient)
    const stopped = expect(dialling).rejects.toMatchObject({ code: 'STOPPED' })
    world.faults.heal()
    await b.stop()
    expect(there.closings).toEqual([expect.any(Error)])
    await stopped
    await timeline.advance('1s')
    expect(here.closings).toEqual([expect.any(Error)])
    expect(events).toContain('a disconnected b')
    const refused = a.open({ addresses: [address] }, ECHO, patient)
    await expect(timeline.runUntil(refused)).rejects.toMatchObject({
      details: { tried: [{ address, reason: 'refused' }] },
    })
    await start('c', { listen: [address] })
  })

  it('leaves no timer behind when all have stopped', async () => {
    const { peer, channel, timeline, start } = await worldOf('abc')
    const d = await start('d', { bootstrap: [...peer('a').addresses()] })
    await channel(peer('a'), peer('b'))
    await timeline.runUntil(peer('a').provide(new Uint8Array(4), patient))
    for (const network of [peer('a'), peer('b'), peer('c'), d]) await network.stop()
    await timeline.advance('1m')
    expect(timeline.pending).toBe(0)
  })
})

describe('hangUp', () => {
  it('drops the connections at once; both sides are told once', async () => {
    const { peer, channel, timeline, events } = await worldOf('ab')
    const [a, b] = [peer('a'), peer('b')]
    const { here, there } = await channel(a, b)
    await a.hangUp(b.peerId)
    expect(here.closings).toEqual([expect.any(Error)])
    await a.hangUp(b.peerId)
    await timeline.advance('1s')
    expect(there.closings).toEqual([expect.any(Error)])
    expect(events.filter((event) => event.includes('disconnected')).sort()).toEqual([
      'a disconnected b',
      'b disconnected a',
    ])
  })
})

it('takes nothing any more from a connection it has dropped', async () => {
  const { peer, channel, timeline, accepted } = await worldOf('ab', { settings: { latencyMs: { min: 10, max: 10 } } })
  const [a, b] = [peer('a'), peer('b')]
  await channel(a, b)
  let heard = 0
  b.subscribe('news', () => {
    heard += 1
    return 'accept'
  })
  expect(await a.publish('news', new Uint8Array(1))).toBe(1)
  const opening = a.open({ peerId: b.peerId, addresses: [] }, ECHO, patient)
  const refused = expect(opening).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
  await timeline.advance(5)
  await b.hangUp(a.peerId)
  await timeline.advance('1s')
  await refused
  expect([heard, accepted.b?.length]).toEqual([0, 1])
})

describe('bootstrap', () => {
  it('is dialled until it answers, and again after a loss', async () => {
    const { start, world, timeline, idOf } = await worldOf('')
    const listen = ['/ip4/127.0.0.1/tcp/4001']
    const a = await start('a', { bootstrap: [`${listen[0]}/p2p/${idOf('hub')}`] })
    const b = await start('b', { bootstrap: listen })
    const joined = () => [a, b].every((network) => world.connections(network.peerId, idOf('hub')) === 1)
    await timeline.advance('1m')
    await start('hub', { listen })
    await timeline.runUntil(joined, { limitMs: 31_000 })
    world.faults.crash(idOf('hub'))
    await timeline.runUntil(() => !joined(), { limitMs: 1_000 })
    await start('hub', { listen })
    await timeline.runUntil(joined, { limitMs: 5_000 })
    world.faults.cut(a.peerId, idOf('hub'), { afterBytes: 0 })
    await timeline.runUntil(() => !joined(), { limitMs: 1_000 })
    await timeline.runUntil(joined, { limitMs: 5_000 })
  })
})
