import { createHash, randomBytes } from 'node:crypto'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { publicKeyToProtobuf } from '@libp2p/crypto/keys'
import { identify } from '@libp2p/identify'
import { type KadDHT, kadDHT, passthroughMapper } from '@libp2p/kad-dht'
import { ping } from '@libp2p/ping'
import { tcp } from '@libp2p/tcp'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { CID } from 'multiformats/cid'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createProviders, type Providers } from '../../src/network/libp2p/providers.ts'
import type { FoundPeer, Network } from '../../src/network/network.ts'
import { until } from '../waiting.ts'
import { NETWORK, network, open, PROTOCOL, serveEcho, soon, started } from './support.ts'

/** A binary CID v1, raw, sha2-256. */
const cidOf = (text: string): Uint8Array =>
  Buffer.concat([Buffer.from('01551220', 'hex'), createHash('sha256').update(text).digest()])

/** Nobody is there who could be asked, which is no answer. */
const NOBODY = expect.objectContaining({ code: 'DIRECTORY_UNREACHABLE' })

async function found(on: Network, cid: Uint8Array, ms: number): Promise<FoundPeer[]> {
  const list: FoundPeer[] = []
  for await (const peer of on.findProviders(cid, { signal: AbortSignal.timeout(ms) })) list.push(peer)
  return list
}

/** Looks until somebody is found: a record may be on its way still. */
async function firstFound(on: Network, cid: Uint8Array): Promise<FoundPeer | undefined> {
  const signal = soon()
  while (!signal.aborted) {
    for await (const peer of on.findProviders(cid, { signal })) return peer
  }
  return undefined
}

/** Connected to the first, and told by the DHT that it is there. */
async function joined(bootstrap: Network, options: Parameters<typeof network>[0] = {}): Promise<Network> {
  const created = network(options)
  let routable = false
  created.observe({
    routable: () => {
      routable = true
    },
  })
  await created.start()
  await open(created, bootstrap)
  await until(() => routable, 'a place in the routing table')
  return created
}

describe('the directory of providers', () => {
  it('is found by a third peer that knows only the bootstrap, with addresses that work, without itself', async () => {
    const bootstrap = await started()
    serveEcho(bootstrap)
    const [provider, seeker] = await Promise.all([joined(bootstrap), joined(bootstrap)])
    serveEcho(provider)
    const cid = cidOf('capability')
    await provider.provide(cid, { signal: soon() })
    const peer = await firstFound(seeker, cid)
    expect(peer).toMatchObject({ peerId: provider.peerId, addresses: provider.addresses() })
    await seeker.open(peer as FoundPeer, PROTOCOL, { signal: soon() })

    await seeker.provide(cid, { signal: soon() })
    const all = await found(seeker, cid, 2000)
    expect(all.map(({ peerId }) => peerId)).toEqual([provider.peerId])
  })

  it('says, and in time, that nobody is there', async () => {
    const alone = await started()
    const before = performance.now()
    await expect(found(alone, cidOf('x'), 200)).rejects.toEqual(NOBODY)
    await alone.provide(cidOf('y'), { signal: AbortSignal.timeout(200) })
    await expect(found(alone, cidOf('y'), 200)).rejects.toEqual(NOBODY)
    expect(performance.now() - before).toBeLessThan(5000)
  })

  it('ends by itself when nobody provides', async () => {
    const bootstrap = await started()
    serveEcho(bootstrap)
    const seeker = await joined(bootstrap)
    expect(await found(seeker, cidOf('nobody has this'), 5000)).toEqual([])
  })

  it.each([2, 3, 8])(
    'F-28 a network of %i peers on loopback: found, absent is an answer, also while a third of them is dead',
    async (count) => {
      const bootstrap = await started()
      serveEcho(bootstrap)
      const others = await Promise.all(Array.from({ length: count - 1 }, () => joined(bootstrap)))
      const provider = others[0] as Network
      const cid = cidOf('capability')
      await provider.provide(cid, { signal: soon() })
      const seeker = others[1] ?? bootstrap
      expect((await firstFound(seeker, cid))?.peerId).toBe(provider.peerId)
      const dead = others.slice(2, 2 + Math.floor(count / 3))
      await Promise.all(dead.map((one) => one.stop()))
      expect((await found(seeker, cid, 5000)).map(({ peerId }) => peerId)).toEqual([provider.peerId])
      expect(await found(seeker, cidOf('nobody has this'), 5000)).toEqual([])
    },
  )

  it('keeps networks of different names apart', async () => {
    const [here, other] = await Promise.all([started(), started({ networkName: 'other' })])
    serveEcho(other)
    let routable = false
    here.observe({
      routable: () => {
        routable = true
      },
    })
    await open(here, other)
    const cid = cidOf('capability')
    await other.provide(cid, { signal: AbortSignal.timeout(200) })
    await expect(found(here, cid, 200)).rejects.toEqual(NOBODY)
    expect(routable).toBe(false)
  })

  it('stores no records of strangers', async () => {
    const target = await started()
    const stranger = await createLibp2p({
      addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
      transports: [tcp()],
      connectionEncrypters: [noise()],
      streamMuxers: [yamux()],
      services: {
        identify: identify(),
        ping: ping(),
        dht: kadDHT({
          protocol: `/hermes/${NETWORK}/kad/1.0.0`,
          clientMode: false,
          peerInfoMapper: passthroughMapper,
          initialQuerySelfInterval: 100,
          validators: { note: async () => {} },
          selectors: { note: () => 0 },
        }),
      },
    })
    onTestFinished(() => stranger.stop())
    await stranger.dial(multiaddr(target.addresses()[0] as string))
    const key = (text: string | Uint8Array) => Buffer.concat([Buffer.from('/pk/'), Buffer.from(text)])
    const ownKey = stranger.peerId.publicKey
    if (ownKey === undefined) throw new Error('no key')
    const records: [Uint8Array, Uint8Array][] = [
      [Buffer.from('/note/x'), randomBytes(10)],
      [key(ownKey.toMultihash().bytes), publicKeyToProtobuf(ownKey)],
    ]
    for (const [name, value] of records) {
      const events: string[] = []
      for await (const event of stranger.services.dht.put(name, value, { signal: soon() })) {
        const sent = event.name === 'PEER_RESPONSE' && event.messageName === 'PUT_VALUE'
        if (sent || event.name === 'QUERY_ERROR') events.push(sent ? 'stored' : 'refused')
      }
      expect(events).toContain('refused')
      expect(events).not.toContain('stored')
    }
  })

  it('refuses what is no CID', async () => {
    const alone = await started()
    await expect(alone.provide(Buffer.from('no'), { signal: soon() })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})

/** A DHT whose peers come and go by hand; it notes who was told of what. */
function fakeDht() {
  const [announced, cancelled]: [string[], string[]] = [[], []]
  const state = { peers: 0, reachable: true }
  const name = (cid: { toString(): string }) => cid.toString()
  const dht = {
    async *provide(cid: object, { signal }: { signal: AbortSignal }) {
      if (state.peers === 0)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      announced.push(name(cid))
      if (state.reachable) yield { name: 'PEER_RESPONSE', messageName: 'ADD_PROVIDER' }
      else yield { name: 'QUERY_ERROR' }
    },
    cancelReprovide: async (cid: object) => {
      cancelled.push(name(cid))
    },
  }
  const life = new AbortController()
  const providers = createProviders({
    dht: dht as unknown as KadDHT,
    ownPeerId: 'own',
    hasPeers: () => state.peers > 0,
    life: life.signal,
  })
  onTestFinished(() => {
    life.abort()
    providers.close()
  })
  return { providers, state, announced, cancelled }
}

describe('an announcement that has reached nobody', () => {
  const [one, two] = [cidOf('one'), cidOf('two')]
  const text = (cid: Uint8Array) => CID.decode(cid).toString()
  const never = new AbortController().signal

  /** Announces while nobody is there, and gives up. */
  async function inVain(providers: Providers, cid: Uint8Array): Promise<void> {
    const controller = new AbortController()
    const providing = providers.provide(cid, controller.signal)
    controller.abort()
    await providing
  }

  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is made again once there is somebody, and then rests', async () => {
    const { providers, state, announced } = fakeDht()
    await inVain(providers, one)
    await inVain(providers, two)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(announced).toEqual([])
    state.peers = 1
    for (let peer = 0; peer < 10; peer += 1) providers.routable()
    await vi.advanceTimersByTimeAsync(100)
    expect(announced).toEqual([text(one), text(two)])
    providers.routable()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(announced).toHaveLength(2)
  })

  it('is made again by itself, ever more rarely, while there are peers that cannot be reached', async () => {
    const { providers, state, announced } = fakeDht()
    Object.assign(state, { peers: 1, reachable: false })
    await providers.provide(one, never)
    await vi.advanceTimersByTimeAsync(60_000)
    const tries = announced.length
    expect(tries).toBeGreaterThan(5)
    expect(tries).toBeLessThan(15)
    state.reachable = true
    await vi.advanceTimersByTimeAsync(30_000)
    await vi.advanceTimersByTimeAsync(300_000)
    expect(announced).toHaveLength(tries + 1)
  })

  it('is not made again when it was taken back, also in the middle', async () => {
    const { providers, state, announced, cancelled } = fakeDht()
    await inVain(providers, one)
    const waiting = providers.provide(two, never)
    await providers.unprovide(one)
    await providers.unprovide(two)
    await waiting
    state.peers = 1
    providers.routable()
    await providers.provide(cidOf('three'), never)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(announced).toEqual([text(cidOf('three'))])
    expect(cancelled).toEqual([text(one), text(two)])
  })
})
