import { setMaxListeners } from 'node:events'
import { HermesError } from '@hermes-peer/protocol'
import {
  type Channel,
  createRecordJudge,
  type DialTarget,
  type FoundPeer,
  type Gossip,
  type Network,
  type NetworkEvents,
  type RecordJudge,
  type RecordKinds,
  type Verdict,
} from 'hermes-peer'
import { demandAddress, parseAddress } from './address.ts'
import { keepConnected } from './bootstrap.ts'
import { type ConnectionEnd, connectionLost } from './connection-end.ts'
import type { Dht } from './dht.ts'
import { dial } from './dial.ts'
import type { Fabric } from './fabric.ts'
import type { GossipNet } from './gossip.ts'
import { endTo, type Host } from './host.ts'
import { openChannel } from './open-channel.ts'

export interface MemoryNetworkOptions {
  /** Base58 peer id of an Ed25519 key. */
  peerId: string
  /** Where to listen, without `/p2p/`; port 0 takes a free one. Default `/ip4/127.0.0.1/tcp/0`. */
  listen?: readonly string[]
  /** Addresses that are kept connected from `start` to `stop`. */
  bootstrap?: readonly string[]
  /** Kinds of records that its DHT keeps, with their checks; others are refused. Default none. */
  records?: RecordKinds
}

export interface World {
  readonly fabric: Fabric
  readonly dht: Dht
  readonly gossip: GossipNet
}

export function createMemoryNetwork(world: World, options: MemoryNetworkOptions): Network {
  return new MemoryNetwork(world, options)
}

/** Bounds of the peers whose addresses are remembered (the one learned of first is forgotten), and of the addresses of one. */
const MAX_KNOWN = 1_000
const MAX_ADDRESSES = 16
/** How long the two ends of a new connection need to tell each other who they are, ms; then the DHT knows the other. */
const IDENTIFY_MS = { min: 1, max: 20 }
const DEFAULT_HOST = '/ip4/127.0.0.1'

class MemoryNetwork implements Network, Host {
  readonly peerId: string
  readonly address: string
  readonly judge: RecordJudge
  /** Bounded by the peers of the world. */
  readonly ends: ConnectionEnd[] = []
  readonly #world: World
  readonly #options: MemoryNetworkOptions
  readonly #handlers = new Map<string, (channel: Channel) => void>()
  readonly #topics = new Map<string, (message: Gossip) => Verdict>()
  readonly #known = new Map<string, readonly string[]>()
  readonly #stopping = new AbortController()
  #background: (() => void)[] = []
  #listening: string[] = []
  #events: NetworkEvents = {}
  #state: 'new' | 'running' | 'stopped' | 'crashed' = 'new'

  constructor(world: World, options: MemoryNetworkOptions) {
    this.#world = world
    this.#options = options
    this.peerId = options.peerId
    const { timeline } = world.fabric
    this.judge = createRecordJudge({ kinds: options.records ?? {}, now: () => timeline.start + timeline.now() })
    this.address = parseAddress(options.listen?.[0] ?? '')?.host ?? DEFAULT_HOST
  }

  get running(): boolean {
    return this.#state === 'running'
  }

  // Lifecycle.

  async start(): Promise<void> {
    if (this.#state === 'crashed') return never()
    if (this.#state === 'running') return
    if (this.#state === 'stopped') throw new HermesError('STOPPED')
    for (const address of this.#options.bootstrap ?? []) demandAddress(address, 'bootstrap')
    const listening = (this.#options.listen ?? [`${DEFAULT_HOST}/tcp/0`]).map((address) => this.#free(address))
    for (const address of listening) this.#world.fabric.listeners.set(address, this)
    this.#listening = listening
    this.#world.fabric.hosts.add(this)
    this.#state = 'running'
    this.#background = (this.#options.bootstrap ?? []).map((address) => this.#keepConnected(address))
  }

  async stop(): Promise<void> {
    if (this.#state === 'stopped' || this.#state === 'crashed') return
    this.#leave('stopped')
    this.#stopping.abort(new HermesError('STOPPED'))
    for (const end of [...this.ends]) end.close(connectionLost(end.remotePeer, 'was closed by stop()'))
  }

  crash(): void {
    if (this.#state === 'crashed') return
    this.#leave('crashed')
    this.#events = {}
    for (const end of this.ends.splice(0)) end.vanish()
  }

  addresses(): readonly string[] {
    return this.#listening.map((address) => `${address}/p2p/${this.peerId}`)
  }

  // Channels.

  handle(protocol: string, accept: (channel: Channel) => void): void {
    if (this.#handlers.has(protocol)) {
      throw new HermesError('INVALID_OPTION', {
        message: `handle: ${protocol} is served already`,
        details: { field: 'protocol' },
      })
    }
    this.#handlers.set(protocol, accept)
  }

  open(target: DialTarget, protocol: string, { signal }: { signal: AbortSignal }): Promise<Channel> {
    return this.#operation(signal, async (either) => {
      const peerId = target.peerId ?? parseAddress(target.addresses[0] ?? '')?.peerId
      const end = (peerId === undefined ? undefined : endTo(this, peerId)) ?? (await this.#dial(target, either))
      return openChannel(end, protocol, either)
    })
  }

  async hangUp(peerId: string): Promise<void> {
    for (const end of this.ends.filter((one) => one.remotePeer === peerId))
      end.close(connectionLost(peerId, 'was closed'))
  }

  /** Places are not counted in memory. */
  relieve(): void {}

  // Finding.

  provide(cid: Uint8Array, { signal }: { signal: AbortSignal }): Promise<void> {
    return this.#operation(signal, (either) => this.#world.dht.provide(this, cid, either))
  }

  async unprovide(cid: Uint8Array): Promise<void> {
    if (this.running) this.#world.dht.unprovide(this, cid)
  }

  async *findProviders(cid: Uint8Array, { signal }: { signal: AbortSignal }): AsyncGenerator<FoundPeer, void> {
    const either = firstOf(signal, this.#stopping.signal)
    const found = this.#world.dht.find(this, cid, either.signal)
    try {
      for (;;) {
        const next = await this.#operation(signal, () => found.next())
        if (next.done) return
        yield next.value
      }
    } finally {
      either.release()
      await found.return()
    }
  }

  putRecord(key: string, value: Uint8Array, { signal }: { signal: AbortSignal }): Promise<number> {
    return this.#operation(signal, async (either) => {
      this.judge.judge(key, value)
      return this.#world.dht.put(this, key, value, either)
    })
  }

  getRecord(key: string, { signal }: { signal: AbortSignal }): Promise<Uint8Array | undefined> {
    return this.#operation(signal, async (either) => {
      this.judge.demandKind(key)
      return this.#world.dht.get(this, key, either)
    })
  }

  // Gossip.

  subscribe(topic: string, receive: (message: Gossip) => Verdict): () => void {
    if (this.#topics.has(topic)) {
      throw new HermesError('INVALID_OPTION', {
        message: `subscribe: ${topic} is subscribed already`,
        details: { field: 'topic' },
      })
    }
    this.#topics.set(topic, receive)
    return () => {
      if (this.#topics.get(topic) === receive) this.#topics.delete(topic)
    }
  }

  publish(topic: string, data: Uint8Array): Promise<number> {
    return this.#operation(this.#stopping.signal, async () => this.#world.gossip.publish(this, topic, data))
  }

  observe(events: NetworkEvents): void {
    if (this.#state !== 'crashed') this.#events = events
  }

  // What the rest of the world asks of this host.

  handler(protocol: string): ((channel: Channel) => void) | undefined {
    return this.running ? this.#handlers.get(protocol) : undefined
  }

  receiver(topic: string): ((message: Gossip) => Verdict) | undefined {
    return this.running ? this.#topics.get(topic) : undefined
  }

  learn(peerId: string, addresses: readonly string[]): void {
    if (peerId === this.peerId || addresses.length === 0) return
    this.#known.delete(peerId)
    this.#known.set(peerId, addresses.slice(0, MAX_ADDRESSES))
    for (const first of this.#known.keys()) {
      if (this.#known.size <= MAX_KNOWN) break
      this.#known.delete(first)
    }
  }

  joined(end: ConnectionEnd): void {
    const isFirst = !endTo(this, end.remotePeer)
    this.ends.push(end)
    const { timeline, random } = this.#world.fabric
    timeline.schedule(random.between(IDENTIFY_MS.min, IDENTIFY_MS.max), () => {
      if (!this.running || !end.connection.usable) return
      this.learn(end.remotePeer, end.remote.addresses())
      this.#world.dht.gained(this)
      this.#events.routable?.()
    })
    if (isFirst) this.#events.connected?.(end.remotePeer)
  }

  left(end: ConnectionEnd): void {
    const index = this.ends.indexOf(end)
    if (index < 0) return
    this.ends.splice(index, 1)
    if (!endTo(this, end.remotePeer)) this.#events.disconnected?.(end.remotePeer)
  }

  /** Nobody reaches this host any more. */
  #leave(state: 'stopped' | 'crashed'): void {
    const { fabric, dht, gossip } = this.#world
    this.#state = state
    for (const stop of this.#background) stop()
    for (const address of this.#listening) fabric.listeners.delete(address)
    this.#listening = []
    fabric.hosts.delete(this)
    dht.forget(this)
    gossip.forget(this)
  }

  /** Ends with STOPPED when this peer stops; of a crashed peer nothing goes on, so it never ends. */
  #operation<T>(signal: AbortSignal, work: (either: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#state === 'crashed') return never()
    if (this.#state !== 'running')
      return Promise.reject(new HermesError(this.#state === 'new' ? 'NOT_STARTED' : 'STOPPED'))
    const either = firstOf(signal, this.#stopping.signal)
    return new Promise((resolve, reject) => {
      const unlessCrashed =
        <V>(settle: (value: V) => void) =>
        (value: V) => {
          either.release()
          if (this.#state !== 'crashed') settle(value)
        }
      work(either.signal).then(unlessCrashed(resolve), unlessCrashed(reject))
    })
  }

  #dial(target: DialTarget, signal: AbortSignal): Promise<ConnectionEnd> {
    const { peerId, addresses } = target
    const known = peerId !== undefined && addresses.length === 0 ? (this.#known.get(peerId) ?? []) : addresses
    return dial(this.#world.fabric, this, { ...target, addresses: known }, signal)
  }

  #keepConnected(address: string): () => void {
    const { timeline, random } = this.#world.fabric
    const peerId = parseAddress(address)?.peerId
    // The end that answered, where the address does not say who will.
    let last: ConnectionEnd | undefined
    return keepConnected({
      timeline,
      random,
      isConnected: () => (peerId === undefined ? last?.alive === true : endTo(this, peerId) !== undefined),
      dial: async () => {
        last = await this.#operation(this.#stopping.signal, (signal) => this.#dial({ addresses: [address] }, signal))
      },
    })
  }

  /** The address to listen at, its port chosen. Throws `ADDRESS_IN_USE`, `INVALID_ADDRESS`. */
  #free(text: string): string {
    const { fabric } = this.#world
    const { transport } = demandAddress(text, 'listen')
    if (transport.endsWith('/tcp/0')) return transport.replace(/0$/, String(fabric.nextNumber('port')))
    if (fabric.listeners.has(transport)) {
      throw new HermesError('ADDRESS_IN_USE', {
        message: `listen: another peer listens at ${transport}`,
        details: { address: transport },
      })
    }
    return transport
  }
}

/** What a call of a dead process comes to. */
function never(): Promise<never> {
  return new Promise(() => {})
}

/** A signal that follows both; not AbortSignal.any, whose weak references make the order depend on the garbage collector. */
function firstOf(...signals: AbortSignal[]): { signal: AbortSignal; release(): void } {
  const controller = new AbortController()
  const follow = (event: Event) => controller.abort((event.target as AbortSignal).reason)
  for (const one of signals) {
    if (one.aborted) controller.abort(one.reason)
    else {
      // Any number of operations follow the life of one network.
      setMaxListeners(0, one)
      one.addEventListener('abort', follow)
    }
  }
  return {
    signal: controller.signal,
    release: () => {
      for (const one of signals) one.removeEventListener('abort', follow)
    },
  }
}
