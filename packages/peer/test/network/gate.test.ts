import { randomBytes } from 'node:crypto'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import type { Connection } from '@libp2p/interface'
import { tcp } from '@libp2p/tcp'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p, type Libp2p } from 'libp2p'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type GateOptions, groupOf, type Standing } from '../../src/network/libp2p/gate.ts'
import { keyFromSeed } from '../../src/network/libp2p/identity.ts'
import type { Network } from '../../src/network/network.ts'
import { until } from '../waiting.ts'
import { open, PROTOCOL, record, serveEcho, soon, started } from './support.ts'

type Gated = Omit<GateOptions, 'linked' | 'participates'>

const rawOf = (seed: Uint8Array) => Buffer.from(keyFromSeed(seed).publicKey.raw).toString('hex')
/** Admits the keys of these seeds; `other` is said of all the rest. */
const admitting = (seeds: readonly Uint8Array[], other: Standing = 'stranger', more: Partial<Gated> = {}): Gated => {
  const admitted = new Set(seeds.map(rawOf))
  return {
    standing: (key) => (admitted.has(Buffer.from(key).toString('hex')) ? 'admitted' : other),
    named: new Set(),
    unknown: 64,
    unknownMs: 60_000,
    perGroup: 64,
    ...more,
  }
}

/** A peer of plain libp2p that connects and says nothing. */
async function stranger(): Promise<Libp2p> {
  const node = await createLibp2p({
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionMonitor: { enabled: false },
  })
  onTestFinished(() => node.stop())
  return node
}
const dial = (from: Libp2p, to: Network) => from.dial(multiaddr(to.addresses()[0] as string))

async function echoes(from: Network, to: Network): Promise<void> {
  const channel = await open(from, to)
  const told = record(channel)
  channel.send(Buffer.from('served'))
  await until(() => told.bytes === 6, 'the echo')
}

describe('the gate', () => {
  it('lets in whom trust knows, and nobody else gets as far as a protocol', async () => {
    const seed = randomBytes(32)
    const connected = vi.fn()
    const target = await started({ gate: admitting([seed]) })
    target.observe({ connected })
    const accepted = vi.fn()
    target.handle('/hermes/other/1.0.0', accepted)
    serveEcho(target)
    const node = await stranger()
    // The dial may come up at this end before the other end has decided.
    const connection = await dial(node, target).catch(() => undefined)
    if (connection) await until(() => connection.status !== 'open', 'the connection to be cut')
    const unknown = await started()
    await expect(
      unknown.open({ peerId: target.peerId, addresses: target.addresses() }, '/hermes/other/1.0.0', { signal: soon() }),
    ).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    expect(connected).not.toHaveBeenCalled()
    expect(accepted).not.toHaveBeenCalled()
    const friend = await started({ privateKey: seed })
    await echoes(friend, target)
    expect(connected.mock.calls).toEqual([[friend.peerId]])
  })

  it('does not dial a peer that trust does not know, and says whose fault that is', async () => {
    const [caller, target] = await Promise.all([started({ gate: admitting([]) }), started()])
    const connected = vi.fn()
    target.observe({ connected })
    serveEcho(target)
    await expect(open(caller, target)).rejects.toThrow(/not admitted here/)
    // Whoever answers at an address is known only once it has.
    const address = target.addresses()[0]?.split('/p2p/')[0] as string
    await expect(caller.open({ addresses: [address] }, PROTOCOL, { signal: soon() })).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
    })
    expect(connected.mock.calls.length).toBeLessThanOrEqual(1)
  })

  it('lets in peers that the user has named, and those with a link, whatever trust says', async () => {
    const [named, linked] = await Promise.all([started(), started()])
    const target = await started({ gate: admitting([], 'stranger', { named: new Set([named.peerId]) }) })
    target.observe({ linked: (peerId) => peerId === linked.peerId })
    serveEcho(target)
    await echoes(named, target)
    await echoes(linked, target)
  })

  it('follows trust as it changes', async () => {
    const seed = randomBytes(32)
    const seeds: Uint8Array[] = []
    const target = await started({
      gate: admitting([], 'stranger', {
        standing: (key) =>
          seeds.some((one) => rawOf(one) === Buffer.from(key).toString('hex')) ? 'admitted' : 'stranger',
      }),
    })
    serveEcho(target)
    const friend = await started({ privateKey: seed })
    await expect(open(friend, target)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    seeds.push(seed)
    await echoes(friend, target)
  })
})

describe('threat: slowloris, a stranger that connects and does nothing', () => {
  it('is closed when it has come to no link in time, while others are served', async () => {
    const seed = randomBytes(32)
    const target = await started({ gate: admitting([seed], 'unknown', { unknownMs: 300 }) })
    serveEcho(target)
    const friend = await started({ privateKey: seed })
    await echoes(friend, target)
    const connections = await Promise.all(
      (await Promise.all([stranger(), stranger(), stranger()])).map((one) => dial(one, target)),
    )
    expect(connections.every(({ status }) => status === 'open')).toBe(true)
    await until(() => connections.every(({ status }) => status !== 'open'), 'all to be closed')
    // Its own connection is older than theirs were.
    await echoes(friend, target)
  })

  it('is kept while it takes part in the DHT of this network', async () => {
    const target = await started({ gate: admitting([], 'unknown', { unknownMs: 300 }) })
    const gone = vi.fn()
    target.observe({ disconnected: gone })
    serveEcho(target)
    const participant = await started()
    await echoes(participant, target)
    const idle = await dial(await stranger(), target)
    await until(() => idle.status !== 'open', 'the one that takes no part to be closed')
    expect(gone).not.toHaveBeenCalledWith(participant.peerId)
    await echoes(participant, target)
  })

  it.each([
    ['in all', { unknown: 4 }],
    ['of one site', { perGroup: 4 }],
  ])('finds no more than a bounded number of places %s', async (_, bound) => {
    const seed = randomBytes(32)
    const target = await started({ gate: admitting([seed], 'unknown', { ...bound }) })
    serveEcho(target)
    const nodes = await Promise.all(Array.from({ length: 8 }, stranger))
    const connections: (Connection | undefined)[] = []
    for (const node of nodes) connections.push(await dial(node, target).catch(() => undefined))
    await until(() => connections.filter((one) => one?.status === 'open').length === 4, 'four to be left')
    const friend = await started({ privateKey: seed })
    // Before its key is seen it is one more of that site.
    if ('perGroup' in bound) await expect(open(friend, target)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    const gone = vi.fn()
    target.observe({ disconnected: gone })
    await nodes[0]?.stop()
    await until(() => gone.mock.calls.length > 0, 'one to be gone')
    await echoes(friend, target)
  })
})

describe('places that run short', () => {
  it('are taken from strangers first, from admitted peers only after them, and never from linked ones', async () => {
    const [seed, linkedSeed] = [randomBytes(32), randomBytes(32)]
    const target = await started({ gate: admitting([seed], 'unknown'), limits: { maxConnections: 5 } })
    serveEcho(target)
    const linked = await started({ privateKey: linkedSeed })
    await echoes(linked, target)
    const admitted = await started({ privateKey: seed })
    await echoes(admitted, target)
    const strange = await Promise.all((await Promise.all([stranger(), stranger()])).map((one) => dial(one, target)))
    const disconnected = vi.fn()
    target.observe({ disconnected })
    const relieve = () => target.relieve((peerId) => peerId === linked.peerId)
    // A connection is left alone for its first 5 s.
    const later = Date.now() + 60_000
    vi.spyOn(Date, 'now').mockReturnValue(later)
    onTestFinished(() => {
      vi.restoreAllMocks()
    })
    relieve()
    await until(() => strange.some(({ status }) => status !== 'open'), 'a stranger to be dropped')
    expect(disconnected.mock.calls.flat()).not.toContain(admitted.peerId)
    await echoes(admitted, target)
    await echoes(linked, target)
  })
})

describe('the site of an address', () => {
  it.each([
    ['/ip4/10.1.2.3/tcp/1', '/ip4/10.1.2.250/tcp/2', true],
    ['/ip4/10.1.2.3/tcp/1', '/ip4/10.1.3.3/tcp/1', false],
    ['/ip6/2001:db8:1::5/tcp/1', '/ip6/2001:db8:1:ffff::9/tcp/1', true],
    ['/ip6/2001:db8:1::5/tcp/1', '/ip6/2001:db8:2::5/tcp/1', false],
    ['/ip6/2001:db8::1/tcp/1', '/ip6/2001:db8:0:1::1/tcp/1', true],
    ['/ip6/::1/tcp/1', '/ip6/0:0:0:1::1/tcp/1', true],
  ])('%s and %s: the same is %s', (one, other, same) => {
    expect(groupOf(multiaddr(one)) === groupOf(multiaddr(other))).toBe(same)
  })
})
