import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, it } from 'vitest'
import { ECHO, patient, worldOf } from '../support/world.ts'

/** What an open was refused with. */
async function refusal(
  opening: Promise<unknown>,
): Promise<{ code: string; tried: { address: string; reason: string }[] }> {
  const error = await opening.then(
    () => expect.unreachable('the channel was opened'),
    (reason) => reason,
  )
  return { code: error.code, tried: error.details?.tried }
}

describe('open', () => {
  it('dials, tells both sides of the connection once, and uses it for the next channel', async () => {
    const { channel, peer, events, world, timeline } = await worldOf('ab')
    const { here, there } = await channel(peer('a'), peer('b'))
    await channel(peer('a'), peer('b'))
    await channel(peer('b'), peer('a'))
    await timeline.advance('1s')
    expect(world.connections(peer('a').peerId, peer('b').peerId)).toBe(1)
    expect(events.sort()).toEqual(['a connected b', 'a routable', 'b connected a', 'b routable'])
    expect(here.channel).toMatchObject({ remotePeer: peer('b').peerId, remoteAddress: peer('b').addresses()[0] })
    expect(there.channel.remotePeer).toBe(peer('a').peerId)
    expect(there.channel.remoteAddress).toMatch(new RegExp(`^/ip4/127\\.0\\.0\\.1/tcp/\\d+/p2p/${peer('a').peerId}$`))
  })

  it('needs no address of a peer that is connected, or was', async () => {
    const { channel, peer, timeline } = await worldOf('ab')
    const [a, b] = [peer('a'), peer('b')]
    await channel(a, b)
    await timeline.advance('1s')
    await timeline.runUntil(b.open({ peerId: a.peerId, addresses: [] }, ECHO, patient))
    await a.hangUp(b.peerId)
    await timeline.advance('1s')
    await timeline.runUntil(b.open({ peerId: a.peerId, addresses: [] }, ECHO, patient))
  })

  it('goes to whoever answers when no peer is named', async () => {
    const { peer, timeline } = await worldOf('ab')
    const address = peer('b').addresses()[0]?.split('/p2p/')[0] ?? ''
    const channel = await timeline.runUntil(peer('a').open({ addresses: [address] }, ECHO, patient))
    expect(channel.remotePeer).toBe(peer('b').peerId)
    expect(channel.remoteAddress).toBe(peer('b').addresses()[0])
  })

  it('names each address with its own reason, and takes the first that works', async () => {
    const { peer, timeline, idOf, world } = await worldOf('abc', { settings: { dialTimeoutMs: 3_000 } })
    const [a, b, c] = [peer('a'), peer('b'), peer('c')]
    const at = (network: typeof a) => network.addresses()[0] ?? ''
    const bare = at(c).split('/p2p/')[0] ?? ''
    const nobody = `/ip4/127.0.0.1/tcp/1/p2p/${b.peerId}`
    const wrong = ['nonsense', '/ip4/1.2.3.4', nobody, bare, at(c), at(a).replace(a.peerId, b.peerId)]
    const reasons = ['invalid address', 'invalid address', 'refused', 'wrong peer', 'wrong peer', 'own address']
    const opening = a.open({ peerId: b.peerId, addresses: wrong }, ECHO, patient)
    expect(await timeline.runUntil(refusal(opening))).toEqual({
      code: 'PEER_UNREACHABLE',
      tried: wrong.map((address, i) => ({ address, reason: reasons[i] })),
    })
    await timeline.runUntil(a.open({ peerId: b.peerId, addresses: [...wrong, at(b)] }, ECHO, patient))

    const unknown = a.open({ peerId: idOf('nobody'), addresses: [] }, ECHO, patient)
    expect(await timeline.runUntil(refusal(unknown))).toEqual({ code: 'PEER_UNREACHABLE', tried: [] })
    const self = a.open({ addresses: [at(a)] }, ECHO, patient)
    expect((await timeline.runUntil(refusal(self))).tried[0]?.reason).toBe('own address')

    world.faults.partition([[c.peerId]])
    const began = timeline.now()
    const cut = a.open({ peerId: c.peerId, addresses: [at(c)] }, ECHO, patient)
    expect((await timeline.runUntil(refusal(cut))).tried).toEqual([{ address: at(c), reason: 'timeout' }])
    expect(timeline.now() - began).toBeCloseTo(3_000, 0)
  })

  it('says so when the other side does not serve the protocol, and keeps the connection', async () => {
    const { peer, timeline, world } = await worldOf('ab')
    const [a, b] = [peer('a'), peer('b')]
    const opening = a.open({ peerId: b.peerId, addresses: b.addresses() }, '/test/unknown/1', patient)
    expect((await timeline.runUntil(refusal(opening))).tried[0]?.reason).toBe('protocol not supported')
    expect(world.connections(a.peerId, b.peerId)).toBe(1)
  })

  it('ends with the reason of its signal: before, while dialling, and while the other side does not answer', async () => {
    const { peer, timeline, world, channel, accepted } = await worldOf('abc')
    const [a, b, c] = [peer('a'), peer('b'), peer('c')]
    const enough = new Error('enough')
    const open = (network: typeof b, signal: AbortSignal) =>
      a.open({ peerId: network.peerId, addresses: network.addresses() }, ECHO, { signal })

    await expect(open(b, AbortSignal.abort(enough))).rejects.toBe(enough)

    const dialling = new AbortController()
    const first = open(b, dialling.signal)
    timeline.schedule(0.1, () => dialling.abort(enough))
    await expect(timeline.runUntil(first)).rejects.toBe(enough)
    await timeline.advance('1s')
    expect(world.connections(a.peerId, b.peerId)).toBe(0)

    await channel(a, c)
    const asking = new AbortController()
    const second = open(c, asking.signal)
    timeline.schedule(0.1, () => asking.abort(enough))
    await expect(timeline.runUntil(second)).rejects.toBe(enough)
    await timeline.advance('1s')
    expect(accepted.c).toHaveLength(2)
    expect(accepted.c?.[1]?.closings).toEqual([expect.any(Error)])
  })

  it('leaves two connections when both dial at the same time', async () => {
    const { peer, timeline, world, events } = await worldOf('ab')
    const [a, b] = [peer('a'), peer('b')]
    const both = [
      a.open({ peerId: b.peerId, addresses: b.addresses() }, ECHO, patient),
      b.open({ peerId: a.peerId, addresses: a.addresses() }, ECHO, patient),
      a.open({ peerId: b.peerId, addresses: b.addresses() }, ECHO, patient),
    ]
    await timeline.runUntil(Promise.all(both))
    expect(world.connections(a.peerId, b.peerId)).toBe(2)
    await a.hangUp(b.peerId)
    await timeline.advance('1s')
    expect(world.connections(a.peerId, b.peerId)).toBe(0)
    expect(events.filter((event) => !event.includes('routable')).sort()).toEqual([
      'a connected b',
      'a disconnected b',
      'b connected a',
      'b disconnected a',
    ])
  })

  it('lets a handler that does not listen, or throws, be seen by whoever moves the time', async () => {
    const { peer, timeline } = await worldOf('ab')
    const [a, b] = [peer('a'), peer('b')]
    b.handle('/deaf', () => {})
    b.handle('/broken', () => {
      throw new Error('broken handler')
    })
    b.handle('/refusing', (channel) => channel.abort(new Error('no')))
    const open = (protocol: string) => a.open({ peerId: b.peerId, addresses: b.addresses() }, protocol, patient)
    await expect(timeline.runUntil(open('/deaf'))).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(timeline.runUntil(open('/broken'))).rejects.toThrow('broken handler')
    await timeline.runUntil(open('/refusing'))
  })

  it('does not carry the async context of one peer to another', async () => {
    const { peer, timeline } = await worldOf('ab')
    const [a, b] = [peer('a'), peer('b')]
    const storage = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    b.observe({ connected: () => void seen.push(storage.getStore()) })
    b.handle('/look', (channel) => {
      seen.push(storage.getStore())
      channel.listen({ data: () => void seen.push(storage.getStore()), drained: () => {}, closed: () => {} })
    })
    await timeline.runUntil(
      storage.run('of a', async () => {
        const channel = await a.open({ peerId: b.peerId, addresses: b.addresses() }, '/look', patient)
        channel.send(new Uint8Array(1))
        expect(storage.getStore()).toBe('of a')
      }),
    )
    await timeline.advance('1s')
    expect(seen).toEqual([undefined, undefined, undefined])
  })
})
