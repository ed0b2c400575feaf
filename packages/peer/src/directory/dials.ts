import type { Clock } from '../clock.ts'
import type { FoundPeer } from '../network/network.ts'

export interface DialsOptions {
  readonly clock: Clock
  /** Dials under way at a time. */
  readonly most: number
  /** A dial that takes longer than this gives its place to the next one, ms: whoever never answers holds up nobody. */
  readonly patienceMs: number
  /** Resolves in any case; whether there is a link. */
  dial(peer: FoundPeer): Promise<boolean>
}

/** Dials of the peers that one look-up found: some at a time, by turns of those who named them, each peer and address once. */
export interface Dials {
  /** `by`: who names it. Whoever names many holds up only itself. */
  add(by: string, peer: FoundPeer): void
  /** Resolves when nothing is dialled or waits for it. */
  idle(): Promise<void>
  /** Nothing is dialled any more. */
  close(): void
}

/** Those who name peers, and peers that each of them may name; further ones are dropped. */
const MOST_LANES = 64
const MOST_PER_LANE = 64
/** Dials of one look-up in all. */
const MOST_DIALS = 256
/** Links from which on no more are wanted. */
const ENOUGH = 20

export function createDials({ clock, most, patienceMs, dial }: DialsOptions): Dials {
  const lanes = new Map<string, { named: number; waiting: FoundPeer[] }>()
  /** Addresses dialled, by peer id; bounded by MOST_DIALS. */
  const tried = new Map<string, Set<string>>()
  const idle = new Set<() => void>()
  let [dialled, under, places, linked] = [0, 0, 0, 0]
  let closed = false

  /** The next in turn: a lane that has had one goes to the end. */
  const next = (): FoundPeer | undefined => {
    for (const [by, lane] of lanes) {
      const peer = lane.waiting.shift()
      if (!peer) continue
      lanes.delete(by)
      lanes.set(by, lane)
      return peer
    }
    return undefined
  }
  const begin = (peer: FoundPeer): void => {
    dialled++
    under++
    places++
    let holds = true
    const give = (): void => {
      if (holds) places--
      holds = false
    }
    const timer = clock.after(patienceMs, () => {
      give()
      go()
    })
    void dial(peer).then((up) => {
      clock.clear(timer)
      give()
      under--
      if (up) linked++
      go()
    })
  }
  const go = (): void => {
    while (!closed && places < most && dialled < MOST_DIALS && linked < ENOUGH) {
      const peer = next()
      if (!peer) break
      const before = tried.get(peer.peerId)
      // Somebody else may know other addresses of one that was named already.
      const addresses = peer.addresses.filter((address) => !before?.has(address))
      if (before && addresses.length === 0) continue
      tried.set(peer.peerId, new Set([...(before ?? []), ...addresses]))
      begin({ peerId: peer.peerId, addresses })
    }
    if (under > 0 && !closed) return
    for (const resolve of idle) resolve()
    idle.clear()
  }

  return {
    add(by, peer) {
      const lane = lanes.get(by) ?? { named: 0, waiting: [] }
      if (closed || lane.named >= MOST_PER_LANE || (!lanes.has(by) && lanes.size >= MOST_LANES)) return
      lane.named++
      lane.waiting.push(peer)
      lanes.set(by, lane)
      go()
    },
    idle: () =>
      new Promise((resolve) => {
        idle.add(resolve)
        go()
      }),
    close() {
      closed = true
      go()
    },
  }
}
