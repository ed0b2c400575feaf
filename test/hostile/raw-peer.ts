import '../../packages/peer/src/network/polyfill.ts'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import { LINK_PROTOCOL, STREAM_PROTOCOL } from '@hermes-peer/protocol'
import { generateKeyPairFromSeed } from '@libp2p/crypto/keys'
import { type GossipSub, gossipsub } from '@libp2p/gossipsub'
import { identify } from '@libp2p/identify'
import type { Connection, PrivateKey } from '@libp2p/interface'
import { tcp } from '@libp2p/tcp'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p, type Libp2pOptions } from 'libp2p'
import type { Actor } from './actors.ts'
import { eventually } from './eventually.ts'
import { type RawStream, rawStream } from './raw-stream.ts'

/** A plain libp2p node: it proves its key to the transport, and knows nothing of what is said on a stream. */
export interface RawPeer {
  readonly peerId: string
  /** Where it listens, with its peer id. */
  readonly address: string
  /** A new connection, also when there is one already. */
  connect(address: string): Promise<Connection>
  /** A stream of the link protocol, on the newest connection to that address. */
  open(address: string, protocol?: string): Promise<RawStream>
  /** The next stream that somebody opens to it. */
  accept(ms?: number): Promise<RawStream>
  readonly connections: readonly Connection[]
  /** Present when it was made with `gossip`. */
  readonly gossip: GossipSub | undefined
  stop(): Promise<void>
}

export interface RawPeerOptions {
  /** Whose key it has on the transport. */
  as: Actor | PrivateKey
  /** Takes part in gossip. */
  gossip?: boolean
}

/** Takes part in gossip without a signature of its own, as all peers of a network do. */
const gossiping = () => ({
  identify: identify(),
  gossip: gossipsub({
    globalSignaturePolicy: 'StrictNoSign',
    allowPublishToZeroTopicPeers: true,
    scoreParams: { IPColocationFactorWeight: 0 },
  }),
})

export async function createRawPeer({ as, gossip = false }: RawPeerOptions): Promise<RawPeer> {
  const privateKey = 'agentId' in as ? await generateKeyPairFromSeed('Ed25519', as.key.seed) : as
  const plain: Libp2pOptions = {
    privateKey,
    addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionManager: { inboundConnectionThreshold: Number.POSITIVE_INFINITY, maxIncomingPendingConnections: 1000 },
    connectionMonitor: { enabled: false },
  }
  const libp2p = gossip ? await createLibp2p({ ...plain, services: gossiping() }) : await createLibp2p(plain)
  const accepted: RawStream[] = []
  for (const protocol of [LINK_PROTOCOL, STREAM_PROTOCOL]) {
    await libp2p.handle(protocol, (stream) => void accepted.push(rawStream(stream)), {
      maxInboundStreams: 1000,
      maxOutboundStreams: 1000,
    })
  }
  const connect = (address: string) => libp2p.dial(multiaddr(address), { force: true })
  const existing = (address: string) =>
    libp2p
      .getConnections()
      .findLast(({ status, remotePeer }) => status === 'open' && address.endsWith(remotePeer.toString()))
  return {
    peerId: libp2p.peerId.toString(),
    get address() {
      return libp2p.getMultiaddrs()[0]?.toString() ?? ''
    },
    connect,
    async open(address, protocol = LINK_PROTOCOL) {
      const on = async (connection: Connection) =>
        rawStream(await connection.newStream(protocol, { maxOutboundStreams: 1000 }))
      const there = existing(address)
      // The other side may just have hung up.
      return (there && (await on(there).catch(() => undefined))) ?? on(await connect(address))
    },
    async accept(ms) {
      await eventually(() => accepted.length > 0, 'a stream from the other side', ms)
      return accepted.shift() as RawStream
    },
    get connections() {
      return libp2p.getConnections()
    },
    gossip: (libp2p.services as { gossip?: GossipSub }).gossip,
    stop: async () => {
      await libp2p.stop()
    },
  }
}
