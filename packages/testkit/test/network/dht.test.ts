import type { FoundPeer, Network } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { ECHO, patient, worldOf } from '../support/world.ts'

const CID = Uint8Array.of(1, 0x55, 0x12, 0x20, 9)

async function find(network: Network, signal: AbortSignal = patient.signal): Promise<FoundPeer[]> {
  const found: FoundPeer[] = []
  for await (const peer of network.findProviders(CID, { signal })) found.push(peer)
  return found
}

/** Peers that all know the first one, and nobody else. */
async function star(names: string) {
  const all = await worldOf(names)
  for (const name of names.slice(1)) await all.channel(all.peer(name), all.peer(names.charAt(0)))
  await all.timeline.advance('1s')
  return all
}

describe('the DHT', () => {
  it('finds who provides, over chains of connections, with the addresses to dial', async () => {
    const { peer, timeline } = await star('hab')
    const began = timeline.now()
    await timeline.runUntil(peer('a').provide(CID, patient))
    expect(timeline.now()).toBeGreaterThan(began)
    const found = await timeline.runUntil(find(peer('b')))
    expect(found).toEqual([
      { peerId: peer('a').peerId, addresses: peer('a').addresses(), toldBy: expect.stringMatching(/^12D3/) },
    ])
    await timeline.runUntil(peer('b').open({ peerId: peer('a').peerId, addresses: [] }, ECHO, patient))
  })

  it('never finds oneself, nor what nobody provides', async () => {
    const { peer, timeline } = await star('ha')
    expect(await timeline.runUntil(find(peer('h')))).toEqual([])
    await timeline.runUntil(peer('a').provide(CID, patient))
    expect(await timeline.runUntil(find(peer('a')))).toEqual([])
    expect(await timeline.runUntil(find(peer('h')))).toHaveLength(1)
  })

  it('waits for a first peer, and announces then', async () => {
    const { peer, timeline, channel } = await worldOf('ab')
    let provided = false
    const providing = peer('a').provide(CID, patient)
    void providing.then(() => {
      provided = true
    })
    const looking = find(peer('b'))
    await timeline.advance('1m')
    expect(provided).toBe(false)
    await channel(peer('b'), peer('a'))
    await timeline.runUntil(providing)
    await timeline.runUntil(looking)
    expect(await timeline.runUntil(find(peer('b')))).toHaveLength(1)
  })

  it('ends with the signal, and says that nobody was there to ask', async () => {
    const { peer, timeline } = await worldOf('a')
    const enough = new Error('enough')
    const controller = new AbortController()
    const pending = [peer('a').provide(CID, controller), find(peer('a'), controller.signal)]
    timeline.schedule(100, () => controller.abort(enough))
    for (const one of pending) one.catch(() => {})
    await timeline.advance('1s')
    await expect(pending[0]).rejects.toBe(enough)
    const nobody = { code: 'DIRECTORY_UNREACHABLE', cause: enough }
    await expect(pending[1]).rejects.toMatchObject(nobody)
    await expect(find(peer('a'), controller.signal)).rejects.toMatchObject(nobody)
  })

  it('still finds the dead until their record expires after 15 min', async () => {
    const { peer, timeline, world } = await star('hab')
    await timeline.runUntil(peer('a').provide(CID, patient))
    world.faults.crash(peer('a').peerId)
    await timeline.advance('14m')
    expect(await timeline.runUntil(find(peer('b')))).toHaveLength(1)
    await timeline.advance('1m')
    expect(await timeline.runUntil(find(peer('b')))).toEqual([])
  })

  it('keeps the living announced, and forgets them after unprovide', async () => {
    const { peer, timeline } = await star('hab')
    await timeline.runUntil(peer('a').provide(CID, patient))
    await timeline.advance('2h')
    expect(await timeline.runUntil(find(peer('b')))).toHaveLength(1)
    await peer('a').unprovide(CID)
    expect(await timeline.runUntil(find(peer('b')))).toHaveLength(1)
    await timeline.advance('16m')
    expect(await timeline.runUntil(find(peer('b')))).toEqual([])
  })

  it('has the new address of one that was started anew', async () => {
    const { peer, timeline, world, start, channel } = await star('hab')
    await timeline.runUntil(peer('a').provide(CID, patient))
    const old = peer('a').addresses()
    world.faults.crash(peer('a').peerId)
    const renewed = await start('a')
    await channel(renewed, peer('h'))
    expect((await timeline.runUntil(find(peer('b'))))[0]?.addresses).toEqual(old)
    await timeline.runUntil(renewed.provide(CID, patient))
    expect((await timeline.runUntil(find(peer('b'))))[0]?.addresses).toEqual(renewed.addresses())
  })

  it('does not reach across a partition', async () => {
    const { peer, timeline, world } = await star('habc')
    world.faults.partition([[peer('a').peerId, peer('h').peerId]])
    await timeline.runUntil(peer('a').provide(CID, patient))
    const controller = new AbortController()
    timeline.schedule(2_000, () => controller.abort(new Error('gave up')))
    await expect(timeline.runUntil(find(peer('b'), controller.signal))).rejects.toMatchObject({
      code: 'DIRECTORY_UNREACHABLE',
    })
    world.faults.heal()
    expect(await timeline.runUntil(find(peer('b')))).toHaveLength(1)
  })

  it('gives what it finds as it comes, to be left at any time', async () => {
    const { peer, timeline } = await star('habcdefg')
    for (const name of 'abcdef') await timeline.runUntil(peer(name).provide(CID, patient))
    const first = async () => {
      for await (const found of peer('g').findProviders(CID, patient)) return found
      return undefined
    }
    const began = timeline.now()
    expect(await timeline.runUntil(first())).toBeDefined()
    const took = timeline.now() - began
    expect(await timeline.runUntil(find(peer('g')))).toHaveLength(6)
    expect(took).toBeLessThan(timeline.now() - began - took)
  })

  it('keeps a record at the 20 peers nearest to it', async () => {
    const names = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN']
    const { peer, timeline, world, channel, start, idOf } = await star(`0${names.join('')}`)
    await timeline.runUntil(peer('z').provide(CID, patient))
    expect(await timeline.runUntil(find(peer('N')))).toHaveLength(1)
    // Over a new hub that was told nothing, each one by itself shows what it keeps.
    world.faults.crash(peer('0').peerId)
    const hub = await start('1')
    let keepers = 0
    for (const name of names.filter((one) => one !== 'z')) {
      await channel(peer(name), hub)
      world.faults.partition([names.filter((one) => one !== name).map(idOf)])
      keepers += (await timeline.runUntil(find(peer(name)))).length
      world.faults.heal()
    }
    expect([19, 20]).toContain(keepers)
  })
})

describe('records in the DHT', () => {
  const text = (value: string) => Buffer.from(value)
  const read = (value: Uint8Array | undefined) => value && Buffer.from(value).toString()

  it('are found by others, the newest only, whoever holds an older one', async () => {
    const { peer, timeline, world, idOf } = await star('habc')
    const put = (name: string, value: string) =>
      timeline.runUntil(peer(name).putRecord('/note/x', text(value), patient))
    const get = (name: string) => timeline.runUntil(peer(name).getRecord('/note/x', patient))
    expect(await get('b')).toBeUndefined()
    expect(await put('a', '1:x first')).toBe(3)
    expect(read(await get('b'))).toBe('1:x first')
    world.faults.partition([[idOf('c')]])
    expect(await put('a', '2:x second')).toBe(2)
    world.faults.heal()
    expect(read(await get('c'))).toBe('2:x second')
    // It has seen the second now, as all others have: the first is taken nowhere.
    await expect(put('b', '1:x first')).rejects.toMatchObject({ code: 'EXPIRED' })
    expect(read(await get('h'))).toBe('2:x second')
  })

  it('are refused when they are of no kind, or not what the key names', async () => {
    const { peer, timeline } = await star('ha')
    const put = (key: string, value: string) => timeline.runUntil(peer('a').putRecord(key, text(value), patient))
    await expect(put('/other/x', '1:x')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(put('/note/x', '1:y')).rejects.toMatchObject({ code: 'IDENTITY_MISMATCH' })
    await expect(put('/note/x', `1:x${'x'.repeat(100)}`)).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' })
    await expect(timeline.runUntil(peer('a').getRecord('/other/x', patient))).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })

  it('cannot be put or had while nobody is there', async () => {
    const { peer, timeline } = await worldOf('a')
    const controller = new AbortController()
    timeline.schedule(100, () => controller.abort(new Error('enough')))
    const both = [peer('a').putRecord('/note/x', text('1:x'), controller), peer('a').getRecord('/note/x', controller)]
    for (const one of both) one.catch(() => {})
    await timeline.advance('1s')
    for (const one of both) await expect(one).rejects.toMatchObject({ code: 'DIRECTORY_UNREACHABLE' })
  })
})
