import '../polyfill.ts'
import { type ICryptoInterface, noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { type GossipSub, gossipsub } from '@libp2p/gossipsub'
import { identify } from '@libp2p/identify'
import type { Connection, Libp2p, PeerId, PrivateKey, TypedEventTarget } from '@libp2p/interface'
import { type KadDHT, kadDHT, passthroughMapper } from '@libp2p/kad-dht'
import { peerIdFromPrivateKey, peerIdFromString } from '@libp2p/peer-id'
import { ping } from '@libp2p/ping'
import { tcp } from '@libp2p/tcp'
import type { Multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { DEFAULTS, STREAM_WINDOW_BYTES } from '../../defaults.ts'
import type { RecordJudge } from '../records.ts'
import { usableAddresses, withPeerId } from './addresses.ts'
import { createDhtLimits } from './dht-limits.ts'
import { gossipOptions } from './gossip.ts'
import type { GossipScore } from './gossip-score.ts'
import { stopWithTimers } from './late-timers.ts'
import { mdnsDiscovery, type OnFound } from './local-discovery.ts'
import type { Settings } from './options.ts'
import { protection } from './private-network.ts'
import { lazyWindow } from './tuning/lazy-window.ts'

const KiB = 1024
const MINUTE = 60_000

/** What may wait in one stream for a handler that is not ready; more than a window cannot come from an honest peer. */
const READ_BUFFER_BYTES = 1024 * KiB
/** A caller that goes on sending although it was told to hold back loses the stream, not the process its memory. */
const WRITE_BUFFER_BYTES = 16 * 1024 * KiB
/** Streams that one connection may hold open, of all protocols: with their windows 32 MiB at the very worst. */
const MAX_STREAMS = 128

/**
 * Provider records: announced again well before they and the addresses beside them (libp2p forgets those after an
 * hour) run out, and gone soon after a peer is. Must be the same at all peers of a network.
 */
const REPROVIDE = { validity: 15 * MINUTE, threshold: 10 * MINUTE, interval: MINUTE }
/** The default of one second would delay the first look-up of a fresh peer by it. */
const FIRST_SELF_QUERY_MS = 100

/** libp2p's types leave out that it tells what it gains. */
export interface RoutingTable extends TypedEventTarget<{ 'peer:add': CustomEvent<PeerId> }> {
  readonly size: number
}

/** The parts of a libp2p node that are used here. */
export interface Node {
  readonly libp2p: Libp2p
  readonly dht: KadDHT
  /** Who the DHT can ask. */
  readonly routingTable: RoutingTable
  readonly gossip: GossipSub
  /** Judges records of the DHT, its own and those of others. */
  readonly judge: RecordJudge
  /** Dials exactly this address; the connection is then known to libp2p as if it had dialled by itself. */
  dialAddress(address: Multiaddr, signal: AbortSignal): Promise<Connection>
  /** Why a dial of that address has not come to an end in time. */
  late(address: Multiaddr): string
  /** Listens on further addresses. */
  listen(addresses: readonly Multiaddr[]): Promise<void>
  /** Stops it with everything that would keep the process alive. */
  stop(): Promise<void>
}

export interface NodeOptions {
  settings: Settings
  privateKey: PrivateKey
  listen: readonly Multiaddr[]
  announce: readonly Multiaddr[]
  score: GossipScore
  nativeCrypto: ICryptoInterface | undefined
  onFound: OnFound
}

/** What libp2p gives to a service; only these are asked for. */
interface Components {
  transportManager: Transports
  addressManager: object
}

interface Transports {
  dial(address: Multiaddr, options: { signal: AbortSignal }): Promise<Connection>
  listen(addresses: Multiaddr[]): Promise<void>
  getListeners(): readonly { getAddrs(): Multiaddr[] }[]
}

/** A node that is not started yet. */
export async function createNode(options: NodeOptions): Promise<Node> {
  const { settings, privateKey, announce, nativeCrypto } = options
  let components: Components | undefined
  const peerId = peerIdFromPrivateKey(privateKey).toString()
  const limits = createDhtLimits(peerId, settings.records)
  const listening = () => {
    const bound = (components?.transportManager.getListeners() ?? []).map((listener) => listener.getAddrs())
    return usableAddresses(bound).map((address) => withPeerId(address, peerId))
  }
  const wire = await protection(settings.preSharedKey)
  const libp2p = await createLibp2p({
    start: false,
    privateKey,
    datastore: limits.datastore,
    connectionGater: { denyInboundEncryptedConnection: (other) => limits.denies(other.toString()) },
    nodeInfo: { name: 'hermes-peer', userAgent: 'hermes-peer' },
    addresses: {
      listen: options.listen.map(String),
      announce: announce.map(String),
      // libp2p leaves out public addresses until a stranger has confirmed them, which nobody here does.
      announceFilter: (addresses) => (announce.length > 0 ? addresses : listening()),
    },
    transports: [tcp()],
    connectionProtector: wire.protector,
    connectionEncrypters: [noise(nativeCrypto === undefined ? {} : { crypto: nativeCrypto })],
    streamMuxers: [
      lazyWindow(
        yamux({
          maxInboundStreams: MAX_STREAMS,
          maxOutboundStreams: MAX_STREAMS,
          streamOptions: {
            initialStreamWindowSize: STREAM_WINDOW_BYTES,
            maxStreamWindowSize: STREAM_WINDOW_BYTES,
            maxReadBufferLength: READ_BUFFER_BYTES,
            maxWriteBufferLength: WRITE_BUFFER_BYTES,
          },
        }),
      ),
    ],
    connectionManager: {
      maxConnections: settings.maxConnections,
      maxIncomingPendingConnections: settings.pendingHandshakes,
      // The default of 5 a second from one address breaks every network of more than a handful of peers on one machine.
      inboundConnectionThreshold: settings.perAddressLimit,
      inboundUpgradeTimeout: DEFAULTS.handshakeTimeoutMs,
      inboundStreamProtocolNegotiationTimeout: DEFAULTS.handshakeTimeoutMs,
      outboundStreamProtocolNegotiationTimeout: DEFAULTS.handshakeTimeoutMs,
      dialTimeout: settings.dialTimeoutMs,
      addressDialTimeout: settings.dialTimeoutMs,
    },
    // It would end a whole connection when one ping is late, as behind a busy event loop; links have their own judge.
    connectionMonitor: { enabled: false, abortConnectionOnPingFailure: false },
    ...(settings.mdns ? { peerDiscovery: [mdnsDiscovery(settings.networkName, options.onFound)] } : {}),
    services: {
      identify: identify(),
      ping: ping(),
      dht: kadDHT({
        protocol: `/hermes/${settings.networkName}/kad/1.0.0`,
        // Left to itself it stays a client, and drops addresses, wherever there is no public address.
        clientMode: false,
        peerInfoMapper: passthroughMapper,
        reprovide: REPROVIDE,
        initialQuerySelfInterval: FIRST_SELF_QUERY_MS,
        ...limits.init,
      }),
      gossip: gossipsub(gossipOptions(options.score)),
      hermes: (all: Components) => {
        components = all
        return {}
      },
    },
  })
  const { dht, gossip } = libp2p.services
  limits.attach(dht, (other) => {
    for (const connection of libp2p.getConnections(peerIdFromString(other))) {
      connection.abort(new Error('it floods the DHT'))
    }
  })
  return {
    libp2p,
    dht,
    routingTable: (dht as KadDHT & { routingTable: RoutingTable }).routingTable,
    gossip,
    judge: limits.judge,
    dialAddress: async (address, signal) => {
      const { transportManager } = components as Components
      const connection = await transportManager.dial(address, { signal }).catch((error: unknown) => {
        throw wire.explain(error, address.toString())
      })
      if (connection.status === 'open') return connection
      throw new DOMException('the connection was closed while it came up', 'ConnectionClosedError')
    },
    late: (address) => wire.late(address.toString()),
    listen: async (addresses) => (components as Components).transportManager.listen([...addresses]),
    stop: () =>
      stopWithTimers({ stop: async () => libp2p.stop(), addressManager: components?.addressManager ?? {}, gossip }),
  }
}
