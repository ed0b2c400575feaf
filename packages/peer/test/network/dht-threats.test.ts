import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { capability, providerCid, type SignedDocument, signingKey, signManifest } from '@hermes-peer/protocol'
import { generateKeyPair } from '@libp2p/crypto/keys'
import { identify } from '@libp2p/identify'
import type { PrivateKey } from '@libp2p/interface'
import { type KadDHT, kadDHT, passthroughMapper } from '@libp2p/kad-dht'
import { peerIdFromPrivateKey } from '@libp2p/peer-id'
import { ping } from '@libp2p/ping'
import { tcp } from '@libp2p/tcp'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Peer } from '../../src/api.ts'
import { systemClock } from '../../src/clock.ts'
import { createPeer } from '../../src/create-peer.ts'
import { DEFAULTS } from '../../src/defaults.ts'
import { createLookups } from '../../src/directory/lookups.ts'
import { recordKinds } from '../../src/directory/records.ts'
import { dhtDirectory } from '../../src/directory/sources/dht.ts'
import { createSourceHealth } from '../../src/directory/sources/health.ts'
import { loadOrCreateKey } from '../../src/identity/key-file.ts'
import { createGossipScore } from '../../src/network/libp2p/gossip-score.ts'
import { keyFromSeed } from '../../src/network/libp2p/identity.ts'
import { createNode } from '../../src/network/libp2p/node.ts'
import { settingsOf } from '../../src/network/libp2p/options.ts'
import type { FoundPeer, Network } from '../../src/network/network.ts'
import { systemRandom } from '../../src/random.ts'
import { createTelemetry } from '../../src/telemetry/telemetry.ts'
import { contextOf } from '../directory/sources/support.ts'
import { temporaryFolder } from '../identity/support.ts'
import { capabilityEntry } from '../routing/support.ts'
import { until } from '../waiting.ts'
import { addProvider, putValue } from './kad-wire.ts'
import { NETWORK, network, open, PROTOCOL, serveEcho, soon, tcpServer } from './support.ts'

/** How much is done: a little in every run, as much as the threat says in the long ones. */
const byTier = (counts: { test: number; ci: number; long: number }) =>
  counts[(process.env.HERMES_TEST_TIER ?? 'test') as 'test' | 'ci' | 'long'] ?? counts.test
const PATIENCE_MS = byTier({ test: 60_000, ci: 300_000, long: 1_800_000 })

const KAD = `/hermes/${NETWORK}/kad/1.0.0`
const HOUR = 3_600_000
const records = recordKinds({
  networkName: NETWORK,
  mostLifeMs: 48 * HOUR,
  toleranceMs: 600_000,
  now: () => Date.now(),
})

/** A peer of ours that has met the others. */
async function honest(...others: Network[]): Promise<Network> {
  const created = network({ records })
  let routable = 0
  created.observe({ routable: () => void routable++ })
  await created.start()
  serveEcho(created)
  for (const other of others) await open(created, other)
  await until(() => routable >= Math.min(1, others.length), 'a place in the DHT')
  return created
}

/** A node of plain libp2p that takes part in the DHT, and takes any record. */
async function stranger(privateKey?: PrivateKey) {
  const libp2p = await createLibp2p({
    ...(privateKey ? { privateKey } : {}),
    addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionManager: { inboundConnectionThreshold: Number.POSITIVE_INFINITY, maxIncomingPendingConnections: 1000 },
    connectionMonitor: { enabled: false },
    services: {
      identify: identify(),
      ping: ping(),
      dht: kadDHT({
        protocol: KAD,
        clientMode: false,
        peerInfoMapper: passthroughMapper,
        initialQuerySelfInterval: 100,
        validators: { 'hermes-manifest': async () => {} },
        selectors: { 'hermes-manifest': () => 0 },
      }),
    },
  })
  onTestFinished(async () => {
    await libp2p.stop()
  })
  return libp2p
}

const author = signingKey(new Uint8Array(createHash('sha256').update('author').digest()))
const recordKey = `/hermes-manifest/${author.publicKey.fingerprint}`
function manifest(serial: number, key = author): SignedDocument {
  const now = Date.now()
  return signManifest(
    {
      agent_id: 'author',
      key: key.publicKey.raw,
      network: NETWORK,
      serial,
      issued_at: now,
      expires_at: now + HOUR,
      description: '',
      capabilities: [capabilityEntry({ name: 'work' })],
    },
    key,
  )
}

describe('threat: manifest rollback', () => {
  it('PUT v1 after v2 is refused, and readers get v2, whoever else holds v1', async () => {
    const first = await honest()
    const [writer, reader] = [await honest(first), await honest(first)]
    const [v1, v2] = [manifest(1), manifest(2)]
    expect(await writer.putRecord(recordKey, v1, { signal: soon() })).toBeGreaterThan(0)
    expect(await writer.putRecord(recordKey, v2, { signal: soon() })).toBeGreaterThan(0)
    await expect(writer.putRecord(recordKey, v1, { signal: soon() })).rejects.toMatchObject({ code: 'EXPIRED' })

    const evil = await stranger()
    await evil.dial(multiaddr(first.addresses()[0] as string))
    await until(() => (evil.services.dht as KadDHT & { routingTable: { size: number } }).routingTable.size > 0)
    const put = async (name: string, value: Uint8Array) => {
      const [stored, refused]: [string[], string[]] = [[], []]
      for await (const event of evil.services.dht.put(Buffer.from(name), value, { signal: soon() })) {
        if (event.name === 'PEER_RESPONSE' && event.messageName === 'PUT_VALUE') stored.push(event.from.toString())
        if (event.name === 'QUERY_ERROR') refused.push(event.from.toString())
      }
      return { stored, refused }
    }
    // It holds v1 itself now, and answers with it. Whoever has seen v2 refuses it.
    const rolled = await put(recordKey, v1)
    expect(rolled.refused).toContain(first.peerId)
    expect(rolled.stored).not.toContain(first.peerId)
    expect(rolled.stored).not.toContain(writer.peerId)
    const other = signingKey(randomBytes(32))
    for (const forged of [manifest(9, other), randomBytes(300)])
      expect((await put(recordKey, forged)).stored).toEqual([])

    await open(reader, first)
    const found = await reader.getRecord(recordKey, { signal: soon() })
    expect(Buffer.from(found ?? [])).toEqual(Buffer.from(v2))
    expect(
      await reader.getRecord(`/hermes-manifest/${other.publicKey.fingerprint}`, { signal: soon() }),
    ).toBeUndefined()
    await expect(reader.getRecord('/unheard-of/x', { signal: soon() })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
  })
})

describe('threat: DHT fill', () => {
  it('a flood of PUT and ADD_PROVIDER leaves the store flat, and look-ups work meanwhile', {
    timeout: PATIENCE_MS,
  }, async () => {
    const node = await createNode({
      settings: settingsOf({ privateKey: randomBytes(32), networkName: NETWORK, records }),
      privateKey: keyFromSeed(randomBytes(32)),
      listen: [multiaddr('/ip4/127.0.0.1/tcp/0')],
      announce: [],
      via: [],
      linked: () => false,
      score: createGossipScore(),
      nativeCrypto: undefined,
      onFound: () => undefined,
    })
    onTestFinished(() => node.stop())
    await node.libp2p.start()
    const target = { peerId: node.libp2p.peerId.toString(), addresses: node.libp2p.getMultiaddrs().map(String) }
    await node.libp2p.handle(PROTOCOL, () => {})
    const store = (
      node.dht as unknown as { components: { datastore: { query(query: object): AsyncIterable<unknown> } } }
    ).components.datastore
    const kept = async (prefix: string) => {
      let count = 0
      for await (const _ of store.query({ prefix })) count++
      return count
    }
    const join = async () => {
      const created = network({ records })
      let routable = false
      created.observe({
        routable: () => {
          routable = true
        },
      })
      await created.start()
      await created.open(target, PROTOCOL, { signal: soon() })
      await until(() => routable, 'a place in the DHT')
      return created
    }
    const [provider, seeker] = [await join(), await join()]
    const cid = providerCid(NETWORK, 'work')
    await provider.provide(cid, { signal: soon() })

    const evil = await stranger()
    const self = { id: evil.peerId.toMultihash().bytes, addresses: evil.getMultiaddrs().map(({ bytes }) => bytes) }
    const capability = () => Buffer.concat([Buffer.from([0x12, 0x20]), randomBytes(32)])
    // A hash alone is taken for a CID of version 0.
    const announcement = () => addProvider(capability(), self)
    const rogue = signingKey(randomBytes(32))
    const record = () =>
      putValue(`/hermes-manifest/${rogue.publicKey.fingerprint}`, manifest(1, signingKey(randomBytes(32))))
    const total = byTier({ test: 2000, ci: 10_000, long: 100_000 })
    const batch = 200
    let sent = 0
    const heap = () => {
      globalThis.gc?.()
      return process.memoryUsage().heapUsed
    }
    const before = heap()
    while (sent < total) {
      const frames = Array.from({ length: batch }, (_, at) => (at % 20 === 0 ? record() : announcement()))
      try {
        const connection = await evil.dial(multiaddr(target.addresses[0] as string))
        for (const frame of frames) {
          // A refusal resets the stream: another one is opened at once.
          const stream = await connection.newStream(KAD)
          stream.send(frame)
          void stream.close().catch(() => undefined)
          sent++
          if (connection.status !== 'open') break
        }
      } catch {
        // It was cut off.
        sent += batch
      }
      if (sent % 1000 < batch) {
        let found = 0
        for await (const _ of seeker.findProviders(cid, { signal: soon() })) found++
        expect(found).toBe(1)
      }
    }
    expect(await kept('/dht/provider')).toBeLessThanOrEqual(512 + 10)
    expect(await kept('/dht/record')).toBe(0)
    if (globalThis.gc) expect(heap() - before).toBeLessThan(64 * 1024 * 1024)
    // Others still announce, and are found.
    const late = await join()
    const next = providerCid(NETWORK, 'more')
    await late.provide(next, { signal: soon() })
    const names: string[] = []
    for await (const { peerId } of seeker.findProviders(next, { signal: soon() })) names.push(peerId)
    expect(names).toEqual([late.peerId])
  })
})

/**
 * Nodes whose ids lie nearer to the key of a capability than those of others, as identities cost nothing. They join through those
 * addresses, keep to themselves what they are told, and name the same 60 inventions to everybody who asks, at an address that is silent.
 */
async function besiege(sybils: number, cid: Uint8Array, addresses: readonly string[]): Promise<ReadonlySet<string>> {
  const target = createHash('sha256').update(cid.subarray(2)).digest()
  const distance = (key: PrivateKey) =>
    createHash('sha256')
      .update(peerIdFromPrivateKey(key).toMultihash().bytes)
      .digest()
      .map((byte, at) => byte ^ (target[at] as number))
  const keys = await Promise.all(Array.from({ length: 500 }, () => generateKeyPair('Ed25519')))
  const near = keys
    .map((key) => ({ key, at: distance(key) }))
    .sort((a, b) => Buffer.compare(a.at, b.at))
    .slice(0, sybils)
  const { address: silent } = await tcpServer(() => {})
  const inventions = await Promise.all(
    Array.from({ length: 60 }, async () => peerIdFromPrivateKey(await generateKeyPair('Ed25519'))),
  )
  for (const { key } of near) {
    const sybil = await stranger(key)
    const { rpc } = sybil.services.dht as unknown as {
      rpc: { handleMessage: (peer: unknown, message: Asked) => Promise<object> }
    }
    const answer = rpc.handleMessage.bind(rpc)
    rpc.handleMessage = async (peer, message) => {
      const told = await answer(peer, message)
      if (message.type !== 'GET_PROVIDERS') return told
      const providers = inventions.map((id) => ({
        id: id.toMultihash().bytes,
        multiaddrs: [multiaddr(silent).bytes],
      }))
      return { ...told, providers }
    }
    for (const address of addresses) await sybil.dial(multiaddr(address))
  }
  return new Set(inventions.map(String))
}

describe('threat: eclipse and sybils', () => {
  it('sybils near the key name inventions by the hundred; the right one is still found and dialled, in bounded time', {
    timeout: PATIENCE_MS,
  }, async () => {
    const cid = providerCid(NETWORK, 'work')
    const first = await honest()
    const provider = await honest(first)
    // A record is kept by the 20 nodes nearest to its key: where all of them are sybils the DHT alone tells nothing true.
    const sybils = byTier({ test: 6, ci: 15, long: 15 })
    const inventions = await besiege(
      sybils,
      cid,
      [first, provider].map((one) => one.addresses()[0] as string),
    )
    await provider.provide(cid, { signal: soon() })
    // It comes when all is said, and has been told nothing itself.
    const seeker = await honest(first)

    const clock = systemClock()
    const source = dhtDirectory()(contextOf('seeker', { networkName: NETWORK, peerId: seeker.peerId, network: seeker }))
    const met: string[] = []
    let dialled = 0
    const lookups = createLookups({
      clock,
      tunables: DEFAULTS,
      telemetry: createTelemetry({ clock }),
      sources: [source],
      health: createSourceHealth(createTelemetry({ clock })),
      async meet(peer: FoundPeer, signal) {
        dialled++
        return seeker.open(peer, PROTOCOL, { signal }).then(
          (channel) => met.push(channel.remotePeer) > 0,
          () => false,
        )
      },
    })
    await lookups.run('work', true)
    expect(met).toContain(provider.peerId)
    // Nobody else was taken for one that offers it: a hint is dialled, and its key must answer.
    expect(met.filter((peerId) => inventions.has(peerId))).toEqual([])
    expect(dialled).toBeLessThanOrEqual(256)
    await source.close()
  })

  it('where the DHT is theirs alone, agents that trust each other still find and call each other', {
    timeout: PATIENCE_MS,
  }, async () => {
    const keys = ['first', 'provider', 'seeker'].map((agentId) => {
      const path = join(temporaryFolder(), 'key.pem')
      return { agentId, path, key: loadOrCreateKey(path, systemRandom()) }
    })
    const allow = keys.map(({ agentId, key }) => ({ agent_id: agentId, fingerprint: key.publicKey.fingerprint }))
    const launch = async (agentId: string, bootstrap: readonly string[], serve?: (peer: Peer) => void) => {
      const identity = keys.find((one) => one.agentId === agentId)?.path as string
      const options = { agentId, identity, network: NETWORK, preset: 'none', trust: { allow }, journal: false } as const
      // All of them come from one machine here, where an attacker would have many.
      const peer = createPeer({ ...options, bootstrap, tuning: { pendingHandshakesPerAddress: 1000 } })
      serve?.(peer)
      await peer.start()
      onTestFinished(() => peer.stop({ drainMs: 0 }))
      return peer
    }
    const work = capability('work', {
      description: 'Says who works.',
      input: z.null(),
      output: z.string(),
      effects: 'none',
    })
    const first = await launch('first', [])
    const [address] = first.addresses as [string]
    const provider = await launch('provider', [address], (peer) => peer.provide(work, () => 'provider'))
    const sybils = byTier({ test: 6, ci: 20, long: 20 })
    await besiege(sybils, providerCid(NETWORK, 'work'), [address, provider.addresses[0] as string])
    const seeker = await launch('seeker', [address])
    expect(await seeker.call(work, null, { timeoutMs: 30_000 })).toBe('provider')
    const found = await seeker.find({ capability: 'work' })
    expect(found.map(({ agentId }) => agentId)).toEqual(['provider'])
  })
})

interface Asked {
  readonly type: string
}
