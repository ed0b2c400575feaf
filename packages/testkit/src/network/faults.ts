import { connectionsBetween } from './connection.ts'
import type { Dht } from './dht.ts'
import type { Fabric } from './fabric.ts'
import type { GossipChances, GossipNet } from './gossip.ts'
import type { FaultKind } from './hits.ts'

/** What can go wrong in a memory world. Whatever is left out is drawn from the world's random source. */
export interface WorldFaults {
  /** How often each kind has really changed something on a living connection; each fault counts once for a connection it touched. */
  readonly hits: Readonly<Record<FaultKind, number>>
  /**
   * Breaks off each connection between two peers once `afterBytes` more bytes of payload have arrived, in both directions
   * together; both ends are told. Default 0–4,096. Returns the number of connections.
   */
  cut(a: string, b: string, options?: { afterBytes?: number }): number
  /** For `forMs` (default 100–2,000) everything between two peers takes `extraMs` (default 50–1,000) longer. */
  delay(a: string, b: string, options?: { extraMs?: number; forMs?: number }): void
  /** The connections that two peers have now stay open, but bytes vanish both ways. New ones work. Returns their number. */
  halfOpen(a: string, b: string): number
  /** A peer reads nothing for `forMs` (default 100–5,000): what is sent to it waits. Returns the way to end it earlier. */
  stall(peerId: string, options?: { forMs?: number }): () => void
  /**
   * Nothing passes between peers of different groups; those in no group form one more. What is sent waits for `heal`, as
   * TCP would send it again, until the connection times out. Replaces an earlier partition.
   */
  partition(groups: readonly (readonly string[])[]): void
  heal(): void
  /** Nothing passes between these two peers, though both may reach others, until `heal`; what is sent waits as in a partition. */
  apart(a: string, b: string): void
  /** Kills all running peers of that id: the other ends are reset, nothing of it is called any more, its own calls never return. */
  crash(peerId: string): void
  /** Loses, repeats and reorders gossip from now on; `{}` ends it. */
  gossip(chances: GossipChances): void
}

export function createFaults(world: { fabric: Fabric; dht: Dht; gossip: GossipNet }): WorldFaults {
  return new SeededFaults(world)
}

class SeededFaults implements WorldFaults {
  readonly #fabric: Fabric
  readonly #dht: Dht
  readonly #gossip: GossipNet
  /** Ends of the stalls that last; at most one for a peer. */
  readonly #stalls = new Map<string, () => void>()

  constructor(world: { fabric: Fabric; dht: Dht; gossip: GossipNet }) {
    this.#fabric = world.fabric
    this.#dht = world.dht
    this.#gossip = world.gossip
  }

  get hits(): Readonly<Record<FaultKind, number>> {
    return this.#fabric.hits.counts()
  }

  cut(a: string, b: string, options: { afterBytes?: number } = {}): number {
    const afterBytes = options.afterBytes ?? this.#fabric.random.int(0, 4_096)
    const connections = connectionsBetween(this.#fabric, a, b)
    for (const connection of connections) connection.cutAfter(afterBytes)
    return connections.length
  }

  delay(a: string, b: string, options: { extraMs?: number; forMs?: number } = {}): void {
    const { paths, random, timeline } = this.#fabric
    const extraMs = options.extraMs ?? random.between(50, 1_000)
    paths.addSpike(a, b, { extraMs, until: timeline.now() + (options.forMs ?? random.between(100, 2_000)) })
  }

  halfOpen(a: string, b: string): number {
    const connections = connectionsBetween(this.#fabric, a, b)
    for (const connection of connections) connection.silence()
    return connections.length
  }

  stall(peerId: string, options: { forMs?: number } = {}): () => void {
    const { random, stalled, timeline } = this.#fabric
    this.#stalls.get(peerId)?.()
    const connections = [...this.#fabric.connections].filter(({ ends }) =>
      ends.some((end) => end.host.peerId === peerId),
    )
    stalled.add(peerId)
    for (const connection of connections) connection.hold('stall', peerId)
    const end = () => {
      if (this.#stalls.get(peerId) !== end) return
      this.#stalls.delete(peerId)
      stalled.delete(peerId)
      cancel()
      for (const connection of connections) connection.release('stall', peerId)
    }
    const cancel = timeline.schedule(options.forMs ?? random.between(100, 5_000), end)
    this.#stalls.set(peerId, end)
    return end
  }

  partition(groups: readonly (readonly string[])[]): void {
    this.#fabric.paths.separate(groups)
    this.#settle()
  }

  heal(): void {
    this.#fabric.paths.open()
    this.partition([])
  }

  apart(a: string, b: string): void {
    this.#fabric.paths.wall(a, b)
    this.#settle()
  }

  /** Holds and releases connections by what lies between their ends now. */
  #settle(): void {
    const { connections, hosts, paths } = this.#fabric
    for (const connection of connections) {
      const [a, b] = connection.ends
      if (paths.separated(a.host.peerId, b.host.peerId)) connection.hold('partition')
      else connection.release('partition')
    }
    for (const host of hosts) this.#dht.gained(host)
  }

  crash(peerId: string): void {
    for (const host of [...this.#fabric.hosts].filter((one) => one.peerId === peerId)) {
      for (const end of host.ends) if (end.connection.ends.every((one) => one.alive)) this.#fabric.hits.count('crash')
      host.crash()
    }
  }

  gossip(chances: GossipChances): void {
    this.#gossip.disturb(chances)
  }
}
