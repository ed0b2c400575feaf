import { HermesError } from '@hermes-peer/protocol'
import type { Connection, PeerStore } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import type { Multiaddr } from '@multiformats/multiaddr'
import type { DialTarget } from '../network.ts'
import { checkPeerId, parseAddress, peerIdIn, tryParse, withPeerId } from './addresses.ts'
import { type Tried, unreachable } from './dial-reason.ts'
import { raceAddresses } from './race.ts'
import { isRelayed } from './relay/relayed.ts'
import { untilAborted } from './signals.ts'

/** Addresses tried of one target; a directory answer may hold any number, the rest is left out. */
const MAX_ADDRESSES = 16
/** Targets dialled at the same time; beyond it a dial fails at once, so that a burst cannot use up the sockets. */
const MAX_DIALS = 128

/** What a target means, once its texts are parsed. */
export interface Route {
  /** The peer that must answer; undefined when whoever answers will do. */
  readonly peerId: string | undefined
  readonly addresses: readonly Multiaddr[]
  /** Addresses that cannot be dialled for this target at all. */
  readonly tried: readonly Tried[]
  /** How the target is called in errors. */
  readonly name: string
}

export interface Dialer {
  /** Throws `INVALID_ADDRESS` when the peer id, or each of the addresses, cannot be parsed. */
  route(target: DialTarget): Route
  /** Rejects with `PEER_UNREACHABLE`. The connection is open, and of the peer that was asked for. */
  dial(route: Route, signal: AbortSignal): Promise<Connection>
}

export interface DialerOptions {
  ownPeerId: string
  peerStore: PeerStore
  /** Dials one address; rejects when nothing usable answers there. */
  dialAddress(address: Multiaddr, signal: AbortSignal): Promise<Connection>
  /** Why an address that was dialled has given no answer in time. */
  late(address: Multiaddr): string
}

export function createDialer(options: DialerOptions): Dialer {
  return new RacingDialer(options)
}

class RacingDialer implements Dialer {
  readonly #options: DialerOptions
  /** Dials in flight by peer id or address: two callers at the same time share one connection. At most MAX_DIALS. */
  readonly #inFlight = new Map<string, Promise<Connection>>()

  constructor(options: DialerOptions) {
    this.#options = options
  }

  route(target: DialTarget): Route {
    const { addresses: texts } = target
    const parsed = texts.slice(0, MAX_ADDRESSES).map((text) => ({ text, address: tryParse(text) }))
    // One broken entry of a directory answer must not hide the good ones; when nothing is left, it is a mistake of the caller.
    if (parsed.length > 0 && parsed.every(({ address }) => address === undefined)) {
      parseAddress(texts[0] as string, 'addresses[0]')
    }
    const first = parsed[0]?.address
    const peerId = target.peerId === undefined ? first && peerIdIn(first) : checkPeerId(target.peerId)
    const addresses = new Map<string, Multiaddr>()
    const tried: Tried[] = []
    for (const { text, address } of peerId === undefined ? parsed.slice(0, 1) : parsed) {
      const other = address && peerIdIn(address)
      if (address === undefined) tried.push({ address: text, reason: 'not a multiaddr' })
      else if (peerId === undefined) addresses.set(text, address)
      else if (other !== undefined && other !== peerId) tried.push({ address: text, reason: 'wrong peer' })
      else {
        const full = withPeerId(address, peerId)
        addresses.set(full.toString(), full)
      }
    }
    const name = peerId ?? texts[0] ?? 'a target without peer id and address'
    // A relay is slower than the peer itself, and has limits.
    const ordered = [...addresses.values()].toSorted((a, b) => Number(isRelayed(a)) - Number(isRelayed(b)))
    return { peerId, addresses: ordered, tried, name }
  }

  async dial(route: Route, signal: AbortSignal): Promise<Connection> {
    const { peerId, name } = route
    if (peerId === this.#options.ownPeerId) {
      throw unreachable(name, [{ address: `/p2p/${peerId}`, reason: 'this peer itself' }])
    }
    const key = peerId ?? name
    for (let other = this.#inFlight.get(key); other !== undefined; other = this.#inFlight.get(key)) {
      try {
        return await untilAborted(other, signal)
      } catch {
        // It may have had other addresses, or less time; so this one tries by itself.
        if (signal.aborted) throw unreachable(name, timedOut(route))
      }
    }
    if (this.#inFlight.size >= MAX_DIALS) {
      throw new HermesError('PEER_UNREACHABLE', {
        message: `${name}: ${MAX_DIALS} other dials are in flight`,
        details: { tried: [] },
      })
    }
    const attempt = this.#race(route, signal).finally(() => this.#inFlight.delete(key))
    this.#inFlight.set(key, attempt)
    return attempt
  }

  async #race(route: Route, signal: AbortSignal): Promise<Connection> {
    const { peerId, name } = route
    const addresses = route.addresses.length > 0 || peerId === undefined ? route.addresses : await this.#known(peerId)
    const { dialAddress: dial, late } = this.#options
    const { connection, tried } = await raceAddresses({ addresses, dial, late, signal })
    if (connection !== undefined) return connection
    throw unreachable(name, [...route.tried, ...tried])
  }

  /** What identify, the DHT or an earlier dial has told. */
  async #known(peerId: string): Promise<Multiaddr[]> {
    try {
      const { addresses } = await this.#options.peerStore.get(peerIdFromString(peerId))
      return addresses.slice(0, MAX_ADDRESSES).map(({ multiaddr }) => withPeerId(multiaddr, peerId))
    } catch {
      return []
    }
  }
}

const timedOut = (route: Route): Tried[] => [
  ...route.tried,
  ...route.addresses.map((address) => ({ address: address.toString(), reason: 'timeout' })),
]
