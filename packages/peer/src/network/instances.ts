import { HermesError, sha256Hex } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import type { OwnInstance } from '../identity/own-instance.ts'
import type { Channel, DialTarget, FoundPeer, Gossip, Network, NetworkEvents, Verdict } from './network.ts'

/**
 * One network over those of all keys that this agent runs under: one, but for the time of a rotation. What is begun goes over
 * the current one; what goes on stays where it is.
 */
export interface Instances extends Network {
  readonly current: OwnInstance
  /** The newest first. */
  readonly all: readonly OwnInstance[]
  /** The instance that a channel belongs to. */
  ownerOf(channel: Channel): OwnInstance
  /** Starts the network of one more instance; nothing goes over it before it is made the current one. */
  prepare(instance: OwnInstance, network: Network): Promise<void>
  /** What is begun from now on goes over that instance; what was announced is announced for it too. */
  use(instance: OwnInstance): void
  /** Ends an instance that is not the current one. */
  retire(instance: OwnInstance): Promise<void>
}

/** Gossip heard in the last seconds: while there are two nodes each message comes twice. */
const MOST_HEARD = 2000
/** How long announcing one thing for a new key may take; what fails is announced again by its network. */
const PROVIDE_MS = 10_000

interface Subscription {
  readonly receive: (message: Gossip) => Verdict
  /** By network: the way to end it. */
  readonly ends: Map<Network, () => void>
}

export function createInstances(first: OwnInstance, firstNetwork: Network, clock: Clock): Instances {
  const networks = new Map<OwnInstance, Network>([[first, firstNetwork]])
  const owners = new WeakMap<Channel, OwnInstance>()
  const handlers = new Map<string, (channel: Channel) => void>()
  const subscriptions = new Map<string, Subscription>()
  const provided = new Map<string, Uint8Array>()
  const heard = new LRUCache<string, true>({ maxSize: MOST_HEARD, sizeCalculation: () => 1 })
  let events: NetworkEvents = {}
  let current = first
  let stopped = false

  const now = (): Network => networks.get(current) as Network
  const mine = (peerId: string): boolean => [...networks.keys()].some((instance) => instance.peerId === peerId)
  const owned = (channel: Channel, instance: OwnInstance): Channel => {
    owners.set(channel, instance)
    return channel
  }
  const handleAt = (instance: OwnInstance, network: Network, protocol: string): void =>
    network.handle(protocol, (channel) => handlers.get(protocol)?.(owned(channel, instance)))
  const subscribeAt = (network: Network, topic: string, { receive, ends }: Subscription): void => {
    const end = network.subscribe(topic, (message) => {
      if (networks.size > 1) {
        const name = `${topic} ${sha256Hex(message.data)}`
        if (heard.get(name)) return 'ignore'
        heard.set(name, true)
      }
      return receive(message)
    })
    ends.set(network, end)
  }
  const provideAt = (network: Network, cid: Uint8Array): void => {
    const stop = new AbortController()
    const timer = clock.after(PROVIDE_MS, () => stop.abort())
    network
      .provide(cid, { signal: stop.signal })
      .catch(() => undefined)
      .finally(() => clock.clear(timer))
  }

  return {
    get current() {
      return current
    },
    get all() {
      return [...networks.keys()].reverse()
    },
    get peerId() {
      return current.peerId
    },
    ownerOf: (channel) => owners.get(channel) ?? current,
    async prepare(instance, network) {
      for (const protocol of handlers.keys()) handleAt(instance, network, protocol)
      network.observe(events)
      networks.set(instance, network)
      for (const [topic, subscription] of subscriptions) subscribeAt(network, topic, subscription)
      try {
        await network.start()
        if (stopped) throw new HermesError('STOPPED')
      } catch (error) {
        networks.delete(instance)
        for (const { ends } of subscriptions.values()) ends.delete(network)
        await network.stop().catch(() => undefined)
        throw error
      }
    },
    use(instance) {
      current = instance
      for (const cid of provided.values()) provideAt(now(), cid)
    },
    async retire(instance) {
      const network = networks.get(instance)
      if (!network || instance === current) return
      networks.delete(instance)
      for (const { ends } of subscriptions.values()) {
        ends.get(network)?.()
        ends.delete(network)
      }
      await network.stop()
    },

    start: () => now().start(),
    async stop() {
      stopped = true
      await Promise.all([...networks.values()].map((network) => network.stop()))
    },
    addresses: () => now().addresses(),
    handle(protocol, accept) {
      handlers.set(protocol, accept)
      for (const [instance, network] of networks) handleAt(instance, network, protocol)
    },
    async open(target: DialTarget, protocol, options) {
      const { from, ...to } = target
      const instance = [...networks.keys()].find(({ peerId }) => peerId === from) ?? current
      return owned(await (networks.get(instance) as Network).open(to, protocol, options), instance)
    },
    async hangUp(peerId) {
      await Promise.all([...networks.values()].map((network) => network.hangUp(peerId)))
    },
    relieve(keep) {
      for (const network of networks.values()) network.relieve(keep)
    },
    async provide(cid, options) {
      provided.set(Buffer.from(cid).toString('hex'), cid)
      await now().provide(cid, options)
    },
    async unprovide(cid) {
      provided.delete(Buffer.from(cid).toString('hex'))
      await Promise.all([...networks.values()].map((network) => network.unprovide(cid)))
    },
    async *findProviders(cid, options): AsyncIterable<FoundPeer> {
      // A node that has just started may not know whom to ask: the one before it does.
      let answered = false
      let fault: unknown
      for (const network of [...networks.values()].reverse()) {
        try {
          for await (const peer of network.findProviders(cid, options)) if (!mine(peer.peerId)) yield peer
          answered = true
        } catch (error) {
          fault = error
        }
      }
      if (!answered) throw fault
    },
    putRecord: (key, value, options) => now().putRecord(key, value, options),
    getRecord: (key, options) => now().getRecord(key, options),
    subscribe(topic, receive) {
      const subscription: Subscription = { receive, ends: new Map() }
      subscriptions.set(topic, subscription)
      for (const network of networks.values()) subscribeAt(network, topic, subscription)
      return () => {
        for (const end of subscription.ends.values()) end()
        if (subscriptions.get(topic) === subscription) subscriptions.delete(topic)
      }
    },
    async publish(topic, data) {
      // Over each node, as each has neighbours of its own.
      const counts = await Promise.all(
        [...networks.values()].map((network) => network.publish(topic, data).catch(() => 0)),
      )
      return Math.max(...counts)
    },
    observe(given) {
      events = given
      for (const network of networks.values()) network.observe(given)
    },
  }
}
