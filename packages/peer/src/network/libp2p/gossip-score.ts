import { LRUCache } from 'lru-cache'

/** Peers whose misbehaviour is remembered; the least recently seen go first. */
const MAX_PEERS = 1000
/** Half of what a peer did is forgiven in this time. */
const HALF_LIFE_MS = 60_000

/** Counts rejected messages per neighbour, for gossipsub's score, which by itself does not count them. */
export interface GossipScore {
  /** A message that this peer handed to us was rejected. */
  rejected(peerId: string): void
  /**
   * 0 for a good neighbour, else negative and growing by the square: gossipsub stops gossiping with it after 4
   * rejections in short time (−10), and stops listening to it after 9 (−80).
   */
  of(peerId: string): number
}

export function createGossipScore(now: () => number = () => performance.now()): GossipScore {
  return new DecayingScore(now)
}

class DecayingScore implements GossipScore {
  readonly #now: () => number
  readonly #counts = new LRUCache<string, { count: number; at: number }>({
    maxSize: MAX_PEERS,
    sizeCalculation: () => 1,
  })

  constructor(now: () => number) {
    this.#now = now
  }

  rejected(peerId: string): void {
    this.#counts.set(peerId, { count: this.#count(peerId) + 1, at: this.#now() })
  }

  of(peerId: string): number {
    const count = this.#count(peerId)
    // Without this a good peer would score −0, and one rejection would linger as a tiny minus for ever.
    return count < 0.1 ? 0 : -(count ** 2)
  }

  #count(peerId: string): number {
    const entry = this.#counts.peek(peerId)
    return entry === undefined ? 0 : entry.count * 0.5 ** ((this.#now() - entry.at) / HALF_LIFE_MS)
  }
}
