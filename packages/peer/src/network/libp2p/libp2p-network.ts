import '../polyfill.ts'
import { HermesError } from '@hermes-peer/protocol'
import type { PeerInfo, PrivateKey } from '@libp2p/interface'
import { peerIdFromPrivateKey } from '@libp2p/peer-id'
import type { Channel, DialTarget, FoundPeer, Gossip, Network, NetworkEvents, Verdict } from '../network.ts'
import { parseAddress } from './addresses.ts'
import { createTopics, type Topics } from './gossip.ts'
import { createGossipScore, type GossipScore } from './gossip-score.ts'
import { keyFromSeed } from './identity.ts'
import { createNode } from './node.ts'
import { type Libp2pNetworkOptions, type Settings, settingsOf } from './options.ts'
import { type Run, startRun } from './run.ts'
import { loadNativeCrypto } from './tuning/native-crypto.ts'

/**
 * The transport of a peer over libp2p: TCP, Noise, yamux, Kademlia, gossipsub. Throws `INVALID_OPTION` or
 * `INVALID_NAME` that names the field. It may be started again after it was stopped.
 */
export function createLibp2pNetwork(options: Libp2pNetworkOptions): Network {
  return new Libp2pNetwork(settingsOf(options))
}

class Libp2pNetwork implements Network {
  readonly peerId: string
  readonly #settings: Settings
  readonly #key: PrivateKey
  readonly #score: GossipScore = createGossipScore()
  readonly #topics: Topics
  readonly #handlers = new Map<string, (channel: Channel) => void>()
  #events: NetworkEvents = {}
  #starting: Promise<Run> | undefined
  #stopping: Promise<void> | undefined
  #run: Run | undefined

  constructor(settings: Settings) {
    this.#settings = settings
    this.#key = keyFromSeed(settings.privateKey)
    this.peerId = peerIdFromPrivateKey(this.#key).toString()
    this.#topics = createTopics({
      prefix: `hermes/${settings.networkName}/`,
      topicBytes: settings.topicBytes,
      score: this.#score,
    })
  }

  async start(): Promise<void> {
    const starting = this.#starting ?? this.#launch()
    this.#starting = starting
    try {
      await starting
    } catch (error) {
      if (this.#starting === starting) this.#starting = undefined
      throw error
    }
  }

  async listen(addresses: readonly string[]): Promise<void> {
    await this.#running().listen(addresses.map((text, index) => parseAddress(text, `listen[${index}]`)))
  }

  stop(): Promise<void> {
    const starting = this.#starting
    if (starting !== undefined) {
      this.#starting = undefined
      this.#stopping = this.#shutDown(starting)
    }
    return this.#stopping ?? Promise.resolve()
  }

  addresses(): readonly string[] {
    return this.#run?.addresses() ?? []
  }

  handle(protocol: string, accept: (channel: Channel) => void): void {
    this.#handlers.set(protocol, accept)
    // Serving begins at once; only the note of it in the peer store is awaited, and fails when the network stops.
    this.#run?.handle(protocol, accept).catch(() => undefined)
  }

  async open(target: DialTarget, protocol: string, options: { signal: AbortSignal }): Promise<Channel> {
    return this.#running().opener.open(target, protocol, options.signal)
  }

  async hangUp(peerId: string): Promise<void> {
    this.#run?.hangUp(peerId)
  }

  relieve(keep: (peerId: string) => boolean): void {
    this.#run?.relieve(keep)
  }

  async provide(cid: Uint8Array, options: { signal: AbortSignal }): Promise<void> {
    await this.#running().providers.provide(cid, options.signal)
  }

  async unprovide(cid: Uint8Array): Promise<void> {
    await this.#run?.providers.unprovide(cid)
  }

  async *findProviders(cid: Uint8Array, options: { signal: AbortSignal }): AsyncIterable<FoundPeer> {
    yield* this.#running().providers.find(cid, options.signal)
  }

  async putRecord(key: string, value: Uint8Array, options: { signal: AbortSignal }): Promise<number> {
    return this.#running().records.put(key, value, options.signal)
  }

  async getRecord(key: string, options: { signal: AbortSignal }): Promise<Uint8Array | undefined> {
    return this.#running().records.get(key, options.signal)
  }

  subscribe(topic: string, receive: (message: Gossip) => Verdict): () => void {
    return this.#topics.subscribe(topic, receive)
  }

  publish(topic: string, data: Uint8Array): Promise<number> {
    return this.#topics.publish(topic, data)
  }

  observe(events: NetworkEvents): void {
    this.#events = events
  }

  #running(): Run {
    if (this.#run === undefined) throw new HermesError('NOT_STARTED')
    return this.#run
  }

  async #launch(): Promise<Run> {
    const settings = this.#settings
    const listen = settings.listen.map((text, index) => parseAddress(text, `listen[${index}]`))
    const announce = settings.announce.map((text, index) => parseAddress(text, `announce[${index}]`))
    // The same port can be listened on again only once it has been let go.
    await this.#stopping?.catch(() => undefined)
    const node = await createNode({
      settings,
      privateKey: this.#key,
      listen,
      announce,
      score: this.#score,
      nativeCrypto: await loadNativeCrypto(),
      onFound: (peer: PeerInfo) => this.#run?.found(peer),
    })
    const events = () => this.#events
    const handlers = this.#handlers
    this.#run = await startRun({ node, settings, listen, topics: this.#topics, handlers, events })
    return this.#run
  }

  async #shutDown(starting: Promise<Run>): Promise<void> {
    const run = await starting.catch(() => undefined)
    this.#run = undefined
    await run?.stop()
  }
}
