import { HermesError } from '@hermes-peer/protocol'
import type { KadDHT } from '@libp2p/kad-dht'
import { LRUCache } from 'lru-cache'
import { type Bucket, createBucket } from './token-bucket.ts'
import { reportTraffic } from './traffic.ts'

/**
 * What one peer may have stored here: as many announcements at once as it may have kept here (see dht-store.ts), and enough to renew
 * them all each five minutes. Records are an agent's own few, and those that readers pass on.
 */
const OF_ONE = {
  ADD_PROVIDER: { burst: 512, perSecond: 4 },
  PUT_VALUE: { burst: 32, perSecond: 0.5 },
} as const
/** All together, as identities cost nothing: a record costs a millisecond or two to check, an announcement a tenth of that. */
const OF_ALL = {
  ADD_PROVIDER: { burst: 4096, perSecond: 400 },
  PUT_VALUE: { burst: 256, perSecond: 32 },
} as const
/** Different keys of records that one peer may put here. */
const MOST_KEYS = 64
/** Announcing peers, and addresses of one, in a message: an honest one names itself. */
const MOST_PROVIDERS = 4
const MOST_ADDRESSES = 32
/** Longest key: a multihash, or the name of a record. */
const MOST_KEY_BYTES = 256
/** Peers whose counts are kept; the least recently seen go first. */
const MOST_PEERS = 4096
/** Refusals of one peer, in a minute, from which on it is no accident: it is cut off, and kept away for as long. */
const MOST_REFUSALS = 4096
const WINDOW_MS = 60_000

/** What is looked at in a message of the DHT; where others are missing it is not ours to judge. */
export interface DhtMessage {
  readonly type?: unknown
  readonly key?: Uint8Array | undefined
  readonly providers?: readonly { readonly multiaddrs?: readonly unknown[] }[] | undefined
}

/** kad-dht answers whatever it is sent, as often as it is sent: this bounds what others can have stored here, by peer and in all. */
export interface DhtGuard {
  /** Throws `BUSY` or `LIMIT_EXCEEDED` when that message of that peer is not to be carried out. */
  judge(peerId: string, message: DhtMessage): void
  /** Whether it has been cut off lately. */
  denies(peerId: string): boolean
}

interface Counts {
  readonly ADD_PROVIDER: Bucket
  readonly PUT_VALUE: Bucket
  /** Keys it has put; at most MOST_KEYS. */
  readonly keys: Set<string>
  refusals: number
  since: number
}

export function createDhtGuard(options: {
  /** Monotonic ms. */
  now(): number
  /** Drops all connections of a peer that does not stop. */
  cutOff(peerId: string): void
}): DhtGuard {
  const { now, cutOff } = options
  const peers = new LRUCache<string, Counts>({ maxSize: MOST_PEERS, sizeCalculation: () => 1 })
  const denied = new LRUCache<string, number>({ maxSize: MOST_PEERS, sizeCalculation: () => 1 })
  const all = { ADD_PROVIDER: createBucket(OF_ALL.ADD_PROVIDER), PUT_VALUE: createBucket(OF_ALL.PUT_VALUE) }

  const countsOf = (peerId: string): Counts => {
    let counts = peers.get(peerId)
    if (!counts) {
      counts = {
        ADD_PROVIDER: createBucket(OF_ONE.ADD_PROVIDER),
        PUT_VALUE: createBucket(OF_ONE.PUT_VALUE),
        keys: new Set(),
        refusals: 0,
        since: now(),
      }
      peers.set(peerId, counts)
    }
    return counts
  }
  const refuse = (peerId: string, counts: Counts, error: HermesError): never => {
    if (now() - counts.since > WINDOW_MS) Object.assign(counts, { since: now(), refusals: 0 })
    counts.refusals++
    if (counts.refusals === MOST_REFUSALS) {
      denied.set(peerId, now() + WINDOW_MS)
      cutOff(peerId)
    }
    throw error
  }

  return {
    judge(peerId, { type, key, providers = [] }) {
      if (type !== 'ADD_PROVIDER' && type !== 'PUT_VALUE') return
      const counts = countsOf(peerId)
      const tooLarge =
        (key?.length ?? 0) > MOST_KEY_BYTES ||
        providers.length > MOST_PROVIDERS ||
        providers.some(({ multiaddrs }) => (multiaddrs?.length ?? 0) > MOST_ADDRESSES)
      if (tooLarge)
        refuse(peerId, counts, new HermesError('LIMIT_EXCEEDED', { message: `${type} with too much in it` }))
      // Its own share first: whoever is over it takes nothing of what all have.
      if (!counts[type].take(now()) || !all[type].take(now())) {
        refuse(peerId, counts, new HermesError('BUSY', { message: `too many ${type} messages` }))
      }
      if (type !== 'PUT_VALUE' || !key) return
      const name = Buffer.from(key).toString('latin1')
      if (counts.keys.has(name)) return
      if (counts.keys.size >= MOST_KEYS) {
        refuse(
          peerId,
          counts,
          new HermesError('BUSY', { message: `records of ${MOST_KEYS} keys came from it already` }),
        )
      }
      counts.keys.add(name)
    },
    denies(peerId) {
      return (denied.get(peerId) ?? Number.NEGATIVE_INFINITY) > now()
    },
  }
}

/**
 * Puts a guard before the handler of all messages, which kad-dht offers no place for. Throws `INTERNAL` when the handler is not where it
 * used to be: a peer without the guard must not start unnoticed.
 */
export function guardDht(dht: KadDHT, guard: DhtGuard): void {
  const { rpc } = dht as unknown as { rpc?: { handleMessage?: Handle } }
  const handle = rpc?.handleMessage
  if (!rpc || typeof handle !== 'function') {
    throw new HermesError('INTERNAL', { message: 'this version of @libp2p/kad-dht has no place for limits' })
  }
  rpc.handleMessage = async (peer, message) => {
    reportTraffic('dht', 1)
    guard.judge(peer.toString(), message)
    return handle.call(rpc, peer, message)
  }
}

type Handle = (peer: { toString(): string }, message: DhtMessage) => Promise<unknown>
