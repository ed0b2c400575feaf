import { HermesError } from '@hermes-peer/protocol'
import type { ConnectionEnd } from './connection-end.ts'
import type { Fabric } from './fabric.ts'
import { type Host, neighbours } from './host.ts'

/** Messages to all who listen to a topic: from neighbour to neighbour, over those only that subscribe and accept them. */
export interface GossipNet {
  /** Returns the number of neighbours that it went to. Throws `LIMIT_EXCEEDED`. */
  publish(host: Host, topic: string, data: Uint8Array): number
  /** From now on each hop loses, repeats or delays messages with these chances. */
  disturb(chances: GossipChances): void
  forget(host: Host): void
}

/** Chances in 0..1, for each message and hop. Default 0. */
export interface GossipChances {
  /** It does not arrive. */
  loss?: number
  /** It arrives again 1–400 ms later, and the receiver gets it again. */
  duplicate?: number
  /** It is kept back for 1–400 ms, so that later ones overtake it. */
  reorder?: number
}

export function createGossip(fabric: Fabric): GossipNet {
  return new MeshGossip(fabric)
}

/** How long a peer knows that it has had a message, ms, and bound of what it remembers: then the oldest are forgotten. */
const SEEN_MS = 120_000
const MAX_SEEN = 10_000
/** Messages rejected from one neighbour after which it is not listened to, until this many ms have passed. */
const MAX_REJECTED = 16
const PENALTY_MS = 60_000
/** Bound of what waits for one neighbour, bytes: over it gossip is dropped, as gossip may be. */
const MAX_QUEUED = 8 * 1024 * 1024
/** What a repeated or reordered message waits, ms. */
const LATER_MS = { min: 1, max: 400 }

interface Message {
  readonly id: number
  readonly topic: string
  readonly data: Uint8Array
  readonly origin: string
}

interface Member {
  /** When each message came; bounded by MAX_SEEN. */
  readonly seen: Map<number, number>
  /** Rejections by neighbour. Bounded by its neighbours. */
  readonly rejected: Map<string, { count: number; since: number }>
}

class MeshGossip implements GossipNet {
  readonly #fabric: Fabric
  readonly #members = new Map<Host, Member>()
  #chances: Required<GossipChances> = { loss: 0, duplicate: 0, reorder: 0 }
  #ids = 0

  constructor(fabric: Fabric) {
    this.#fabric = fabric
  }

  publish(host: Host, topic: string, data: Uint8Array): number {
    const most = this.#fabric.settings.gossipBytes
    if (data.length > most) {
      throw new HermesError('LIMIT_EXCEEDED', {
        message: `publish to ${topic}: ${data.length} bytes are over the limit of ${most}`,
        details: { size: data.length, limit: most },
      })
    }
    const message = { id: this.#ids++, topic, data: new Uint8Array(data), origin: host.peerId }
    this.#remember(host, message)
    return this.#spread(host, message, host.peerId)
  }

  disturb(chances: GossipChances): void {
    this.#chances = { loss: 0, duplicate: 0, reorder: 0, ...chances }
  }

  forget(host: Host): void {
    this.#members.delete(host)
  }

  #spread(host: Host, message: Message, from: string): number {
    const to = neighbours(host).filter(
      ({ remote, remotePeer }) =>
        remotePeer !== from && remotePeer !== message.origin && remote.receiver(message.topic),
    )
    for (const end of to) this.#hop(end, message)
    return to.length
  }

  #hop(end: ConnectionEnd, message: Message): void {
    const { hits, random, timeline } = this.#fabric
    if (random.chance(this.#chances.loss)) {
      hits.count('gossipLost')
      return
    }
    const later = (repeated: boolean) => {
      timeline.schedule(random.between(LATER_MS.min, LATER_MS.max), () => this.#transmit(end, message, repeated))
    }
    if (random.chance(this.#chances.duplicate)) {
      hits.count('gossipDuplicated')
      this.#transmit(end, message, false)
      later(true)
    } else if (random.chance(this.#chances.reorder)) {
      hits.count('gossipReordered')
      later(false)
    } else this.#transmit(end, message, false)
  }

  #transmit(end: ConnectionEnd, message: Message, repeated: boolean): void {
    const size = message.data.length
    if (end.queuedBytes + size > MAX_QUEUED) return
    end.send({
      size,
      arrive: (received) => {
        if (received === size) this.#receive(end.remote, end.host.peerId, message, repeated)
        return undefined
      },
    })
  }

  #receive(host: Host, from: string, message: Message, repeated: boolean): void {
    const receive = host.receiver(message.topic)
    if (!receive || this.#isIgnored(host, from)) return
    const isNew = this.#remember(host, message)
    if (!isNew && !repeated) return
    const { trace, timeline } = this.#fabric
    trace?.add(`${timeline.now()} gossip ${message.id} ${from} ${host.peerId}`)
    const verdict = receive({ from, data: new Uint8Array(message.data) })
    if (verdict === 'reject') this.#punish(host, from)
    if (verdict === 'accept' && isNew) this.#spread(host, message, from)
  }

  /** False when the host has had it before. */
  #remember(host: Host, message: Message): boolean {
    const { seen } = this.#member(host)
    const now = this.#fabric.timeline.now()
    for (const [id, at] of seen) {
      if (at + SEEN_MS > now && seen.size < MAX_SEEN) break
      seen.delete(id)
    }
    if (seen.has(message.id)) return false
    seen.set(message.id, now)
    return true
  }

  #isIgnored(host: Host, from: string): boolean {
    const { rejected } = this.#member(host)
    const record = rejected.get(from)
    if (record && record.since + PENALTY_MS <= this.#fabric.timeline.now()) rejected.delete(from)
    else if (record) return record.count >= MAX_REJECTED
    return false
  }

  #punish(host: Host, from: string): void {
    const { rejected } = this.#member(host)
    const record = rejected.get(from) ?? { count: 0, since: this.#fabric.timeline.now() }
    record.count += 1
    rejected.set(from, record)
  }

  #member(host: Host): Member {
    let member = this.#members.get(host)
    if (!member) {
      member = { seen: new Map(), rejected: new Map() }
      if (host.running) this.#members.set(host, member)
    }
    return member
  }
}
