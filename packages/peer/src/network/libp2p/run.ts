import type { Connection, PeerInfo } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import type { Multiaddr } from '@multiformats/multiaddr'
import type { Channel, NetworkEvents } from '../network.ts'
import { checkPeerId } from './addresses.ts'
import { createChannel } from './channel.ts'
import { createDhtRecords, type DhtRecords } from './dht-records.ts'
import { createDialer, type Dialer } from './dialer.ts'
import type { Topics } from './gossip.ts'
import type { Node } from './node.ts'
import { createOpener, type Opener } from './opener.ts'
import type { Settings } from './options.ts'
import { createProviders, type Providers } from './providers.ts'
import { deadline } from './signals.ts'
import { startError } from './start-error.ts'

/** Found peers are connected to up to this share of all connections, so that a crowded link leaves room for callers. */
const DISCOVERY_SHARE = 0.5
/** Share of the connections at which those that serve no link are closed. */
const RELIEF_SHARE = 0.8
/** A connection has this long to come to a link before its place may be given away, ms: as long as a handshake may take. */
const IDLE_MS = 5_000

/** A network between `start` and `stop`. */
export interface Run {
  readonly opener: Opener
  readonly providers: Providers
  readonly records: DhtRecords
  addresses(): string[]
  /** Rejects with what `Network.start` promises. */
  listen(addresses: readonly Multiaddr[]): Promise<void>
  handle(protocol: string, accept: (channel: Channel) => void): Promise<void>
  hangUp(peerId: string): void
  relieve(keep: (peerId: string) => boolean): void
  /** A peer that was found on the local link: connects to it, quietly. */
  found(peer: PeerInfo): void
  stop(): Promise<void>
}

export interface RunOptions {
  node: Node
  settings: Settings
  listen: readonly Multiaddr[]
  topics: Topics
  handlers: ReadonlyMap<string, (channel: Channel) => void>
  events(): NetworkEvents
}

/** Starts a node and puts everything around it. Rejects with what `Network.start` promises, leaving nothing behind. */
export async function startRun(options: RunOptions): Promise<Run> {
  const run = new NodeRun(options)
  try {
    // Before it listens, so that the first caller finds all of them …
    const early = new Map(options.handlers)
    for (const [protocol, accept] of early) await run.handle(protocol, accept)
    await options.node.libp2p.start()
    // … and those that were set meanwhile.
    for (const [protocol, accept] of options.handlers) {
      if (early.get(protocol) !== accept) await run.handle(protocol, accept)
    }
  } catch (error) {
    await run.stop()
    throw startError(error, options.listen)
  }
  options.topics.attach(options.node.gossip)
  return run
}

class NodeRun implements Run {
  readonly opener: Opener
  readonly providers: Providers
  readonly records: DhtRecords
  readonly #options: RunOptions
  readonly #dialer: Dialer
  readonly #life = new AbortController()
  /** Peers that `connected` was told of; bounded by the connections. */
  readonly #connected = new Set<string>()

  constructor(options: RunOptions) {
    const { node, settings } = options
    const { libp2p, dht, routingTable, dialAddress, late, judge } = node
    this.#options = options
    const ownPeerId = libp2p.peerId.toString()
    const life = this.#life.signal
    this.#dialer = createDialer({ ownPeerId, peerStore: libp2p.peerStore, dialAddress, late })
    this.opener = createOpener({
      ownPeerId,
      dialer: this.#dialer,
      connections: (peerId) => this.#connections(peerId),
      life,
      timeoutMs: settings.dialTimeoutMs,
      maxOutboundStreams: settings.inboundChannels,
    })
    this.providers = createProviders({ dht, ownPeerId, hasPeers: () => routingTable.size > 0, life })
    this.records = createDhtRecords({ dht, ownPeerId, judge, life })
    libp2p.addEventListener('peer:connect', ({ detail }) => this.#onConnect(detail.toString()))
    libp2p.addEventListener('peer:disconnect', ({ detail }) => this.#onDisconnect(detail.toString()))
    routingTable.addEventListener('peer:add', () => {
      this.providers.routable()
      quietly(() => options.events().routable?.())
    })
  }

  addresses(): string[] {
    return this.#options.node.libp2p.getMultiaddrs().map(String)
  }

  async listen(addresses: readonly Multiaddr[]): Promise<void> {
    try {
      await this.#options.node.listen(addresses)
    } catch (error) {
      throw startError(error, addresses)
    }
  }

  handle(protocol: string, accept: (channel: Channel) => void): Promise<void> {
    const limit = this.#options.settings.inboundChannels(protocol)
    return this.#options.node.libp2p.handle(
      protocol,
      (stream, connection) => {
        try {
          accept(createChannel(stream, connection))
        } catch (error) {
          stream.abort(error instanceof Error ? error : new Error(String(error)))
        }
      },
      { maxInboundStreams: limit, maxOutboundStreams: limit, force: true },
    )
  }

  hangUp(peerId: string): void {
    for (const connection of [...this.#connections(checkPeerId(peerId))])
      connection.abort(new Error('this side has hung up'))
  }

  relieve(keep: (peerId: string) => boolean): void {
    const { libp2p } = this.#options.node
    const connections = libp2p.getConnections()
    let over = connections.length - Math.ceil(this.#options.settings.maxConnections * RELIEF_SHARE) + 1
    if (over <= 0) return
    const youngest = Date.now() - IDLE_MS
    for (const connection of connections.toSorted((a, b) => a.timeline.open - b.timeline.open)) {
      if (over <= 0 || connection.timeline.open > youngest) return
      if (keep(connection.remotePeer.toString())) continue
      connection.abort(new Error('its place is needed'))
      over--
    }
  }

  found(peer: PeerInfo): void {
    const { libp2p } = this.#options.node
    const { maxConnections, dialTimeoutMs } = this.#options.settings
    const target = { peerId: peer.id.toString(), addresses: peer.multiaddrs.map(String) }
    if (this.#connected.has(target.peerId) || this.#life.signal.aborted) return
    if (libp2p.getConnections().length >= maxConnections * DISCOVERY_SHARE) return
    const limit = deadline({ parents: [this.#life.signal], ms: dialTimeoutMs })
    const dial = async () => this.#dialer.dial(this.#dialer.route(target), limit.signal)
    // It is announced every 10 s, which is when it is tried again.
    dial().then(limit.clear, limit.clear)
  }

  async stop(): Promise<void> {
    this.#life.abort(new Error('the network has stopped'))
    this.providers.close()
    this.#options.topics.detach()
    await this.#options.node.stop()
    // libp2p stops listening to its connections before it closes them.
    for (const peerId of [...this.#connected]) this.#onDisconnect(peerId)
  }

  #connections(peerId: string): readonly Connection[] {
    return this.#options.node.libp2p.getConnections(peerIdFromString(peerId))
  }

  #onConnect(peerId: string): void {
    if (this.#connected.has(peerId)) return
    this.#connected.add(peerId)
    quietly(() => this.#options.events().connected?.(peerId))
  }

  #onDisconnect(peerId: string): void {
    if (!this.#connected.delete(peerId)) return
    quietly(() => this.#options.events().disconnected?.(peerId))
  }
}

/** An observer that throws must not end the process from within an event of libp2p. */
function quietly(run: () => void): void {
  try {
    run()
  } catch {
    // Observers answer for themselves.
  }
}
