import { HermesError } from '@hermes-peer/protocol'
import type { KadDHT, QueryEvent } from '@libp2p/kad-dht'
import type { Multiaddr } from '@multiformats/multiaddr'
import { CID } from 'multiformats/cid'
import type { FoundPeer } from '../network.ts'
import { withPeerId } from './addresses.ts'
import { type Deadline, deadline, untilAborted } from './signals.ts'

/** Announcements that one peer keeps up: far more capabilities than one agent has. */
const MAX_ANNOUNCED = 4096
/** Peers taken of one look-up, and of what one peer tells in it: nobody may fill it with inventions. */
const MAX_FOUND = 200
const MAX_TOLD = 20
/** Addresses taken of one found peer. */
const MAX_ADDRESSES = 16
/** The DHT gains its first peers in bursts; announcements wait for the burst to end. */
const REPEAT_AFTER_MS = 100
/** While peers are there but none could be reached, waits double up to this. */
const REPEAT_CAP_MS = 30_000
/** One repeated announcement; a dead host costs its dial timeout. */
const REPEAT_TIMEOUT_MS = 10_000

/** Provider records of this peer and look-ups of others'. */
export interface Providers {
  /** As `Network.provide`. */
  provide(cid: Uint8Array, signal: AbortSignal): Promise<void>
  /** As `Network.unprovide`. */
  unprovide(cid: Uint8Array): Promise<void>
  /** As `Network.findProviders`. */
  find(cid: Uint8Array, signal: AbortSignal): AsyncIterable<FoundPeer>
  /** The DHT has gained a peer: what has reached nobody yet is announced again soon. */
  routable(): void
  close(): void
}

export interface ProvidersOptions {
  dht: KadDHT
  ownPeerId: string
  /** Whether the routing table has anyone to announce to. */
  hasPeers(): boolean
  /** Ends when the network stops. */
  life: AbortSignal
}

export function createProviders(options: ProvidersOptions): Providers {
  return new DhtProviders(options)
}

interface Announcement {
  readonly cid: CID
  /** Peers that took the record, at the best attempt. */
  reached: number
  /** Attempts going on. */
  running: Set<Deadline>
}

class DhtProviders implements Providers {
  readonly #options: ProvidersOptions
  /** By text of the CID; at most MAX_ANNOUNCED. */
  readonly #announced = new Map<string, Announcement>()
  #timer: NodeJS.Timeout | undefined
  /** When the timer fires, on the monotonic clock; undefined while none is set. */
  #due: number | undefined
  #waitMs = REPEAT_AFTER_MS

  constructor(options: ProvidersOptions) {
    this.#options = options
  }

  async provide(bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const cid = parseCid(bytes)
    const key = cid.toString()
    let entry = this.#announced.get(key)
    if (entry === undefined) {
      if (this.#announced.size >= MAX_ANNOUNCED) {
        throw new HermesError('QUEUE_FULL', { message: `one peer announces at most ${MAX_ANNOUNCED} records` })
      }
      entry = { cid, reached: 0, running: new Set() }
      this.#announced.set(key, entry)
    }
    await this.#announce(entry, deadline({ parents: [signal, this.#options.life] }))
    if (entry.reached === 0) this.#repeatLater()
  }

  async unprovide(bytes: Uint8Array): Promise<void> {
    const cid = parseCid(bytes)
    const entry = this.#announced.get(cid.toString())
    if (entry === undefined) return
    this.#announced.delete(cid.toString())
    for (const attempt of entry.running) attempt.abort()
    const limit = deadline({ parents: [this.#options.life], ms: REPEAT_TIMEOUT_MS })
    try {
      await this.#options.dht.cancelReprovide(cid, { signal: limit.signal })
    } finally {
      limit.clear()
    }
  }

  async *find(bytes: Uint8Array, signal: AbortSignal): AsyncIterable<FoundPeer> {
    const cid = parseCid(bytes)
    const limit = deadline({ parents: [signal, this.#options.life] })
    const { dht, ownPeerId, life } = this.#options
    const events = findMany(dht, cid, limit.signal)[Symbol.asyncIterator]()
    /** By peer; bounded by MAX_FOUND. */
    const seen = new Set([ownPeerId])
    let answered = false
    let fault: unknown
    try {
      while (!limit.signal.aborted && seen.size <= MAX_FOUND) {
        const { done, value: event } = await untilAborted(events.next(), limit.signal)
        if (done === true) break
        // Its own table is told as an answer too.
        if (event.name === 'PEER_RESPONSE' && !isSelf(event.from, ownPeerId)) answered = true
        if (event.name !== 'PROVIDER') continue
        const toldBy = event.from.toString()
        let told = 0
        for (const { id, multiaddrs } of event.providers) {
          const peerId = id.toString()
          if (seen.has(peerId)) continue
          if (told++ >= MAX_TOLD) break
          seen.add(peerId)
          answered = true
          yield { peerId, addresses: textsOf(multiaddrs, peerId), toldBy }
        }
      }
    } catch (error) {
      fault = error
    } finally {
      limit.abort()
      limit.clear()
      // It may hang in a request; the signal ends that, and nobody has to wait for it.
      void Promise.resolve(events.return?.()).catch(() => undefined)
    }
    if (life.aborted) throw new HermesError('STOPPED')
    if (!answered) throw nobodyAnswered(fault)
  }

  routable(): void {
    this.#waitMs = REPEAT_AFTER_MS
    this.#repeatLater()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** One attempt; never rejects: the repeat, and then the DHT's own renewal, make it good. */
  async #announce(entry: Announcement, limit: Deadline): Promise<void> {
    entry.running.add(limit)
    let reached = 0
    const run = async () => {
      for await (const event of this.#options.dht.provide(entry.cid, { signal: limit.signal })) {
        if (event.name === 'PEER_RESPONSE' && event.messageName === 'ADD_PROVIDER') reached += 1
      }
    }
    try {
      await untilAborted(run(), limit.signal)
    } catch {
      // Nobody there, or not in time.
    } finally {
      limit.clear()
      entry.running.delete(limit)
      entry.reached = Math.max(entry.reached, reached)
    }
  }

  #repeatLater(): void {
    if (this.#options.life.aborted || ![...this.#announced.values()].some(waits)) return
    const due = performance.now() + this.#waitMs
    // A stream of new peers must not push it off for ever.
    if (this.#due !== undefined && this.#due <= due) return
    clearTimeout(this.#timer)
    this.#due = due
    this.#timer = setTimeout(() => void this.#repeat(), this.#waitMs)
    this.#timer.unref()
  }

  async #repeat(): Promise<void> {
    this.#due = undefined
    // With nobody there the next peer of the DHT starts it again.
    if (!this.#options.hasPeers()) return
    this.#waitMs = Math.min(this.#waitMs * 2, REPEAT_CAP_MS)
    for (const entry of [...this.#announced.values()].filter(waits)) {
      if (this.#options.life.aborted) return
      await this.#announce(entry, deadline({ parents: [this.#options.life], ms: REPEAT_TIMEOUT_MS }))
    }
    this.#repeatLater()
  }
}

/** An address is often known twice, with and without its peer id. */
const textsOf = (addresses: readonly Multiaddr[], peerId: string): string[] =>
  [...new Set(addresses.map((address) => withPeerId(address, peerId).toString()))].slice(0, MAX_ADDRESSES)

const isSelf = (from: { toString(): string }, own: string): boolean => from.toString() === own

export function nobodyAnswered(cause: unknown): HermesError {
  return new HermesError('DIRECTORY_UNREACHABLE', {
    message: 'no peer of the DHT has answered',
    details: { sources: [{ source: 'dht', reason: 'no peer of the DHT has answered' }] },
    ...(cause === undefined ? {} : { cause }),
  })
}

/**
 * kad-dht ends a look-up with the 20th provider, so that one peer which invents 20 would hide all others. The number comes from the
 * size of its buckets, which here is another one for this query only; where it is not where it used to be, 20 remain.
 */
function findMany(dht: KadDHT, cid: CID, signal: AbortSignal): AsyncIterable<QueryEvent> {
  const routing = (dht as Partial<WithRouting>).contentRouting
  if (typeof routing?.findProviders !== 'function') return dht.findProviders(cid, { signal })
  const patient: WithRouting['contentRouting'] = Object.create(routing, {
    routingTable: { value: { kBucketSize: MAX_FOUND } },
  })
  return patient.findProviders(cid, { signal })
}

interface WithRouting {
  readonly contentRouting: { findProviders(cid: CID, options: { signal: AbortSignal }): AsyncIterable<QueryEvent> }
}

const waits = (entry: Announcement): boolean => entry.reached === 0 && entry.running.size === 0

function parseCid(bytes: Uint8Array): CID {
  try {
    return CID.decode(bytes)
  } catch (cause) {
    throw new HermesError('INVALID_OPTION', {
      message: 'cid: the bytes are not a binary CID',
      details: { field: 'cid' },
      cause,
    })
  }
}
