import type { Connection, PeerId } from '@libp2p/interface'
import { peerIdFromString } from '@libp2p/peer-id'
import { type Multiaddr, multiaddr } from '@multiformats/multiaddr'
import { peerIdIn } from '../addresses.ts'
import { reasonOf } from '../dial-reason.ts'
import { deadline } from '../signals.ts'
import { relayIn } from './relayed.ts'
import type { SlotStore } from './transport.ts'

/** A slot is asked for again this often at most, and at half of its time: that also shows whether the relay is there. */
const RENEW_MS = 30_000
const RENEW_LEAST_MS = 1000
/** Waits after a failure double from the first to the last of these. */
const RETRY_MS = 500
const RETRY_CAP_MS = 15_000
/** Dial, encryption and the question itself. */
const ATTEMPT_MS = 5_000
/** The protocol that a relay speaks. */
const HOP = '/libp2p/circuit/relay/0.2.0/hop'

/** Addresses looked at, and taken, of what one relay says of itself, and the longest that others take, in characters. */
const MAX_TOLD = 16
const MAX_ADDRESSES = 4
const MAX_ADDRESS_LENGTH = 400

/** What happens to the slots of a peer. */
export interface SlotEvents {
  /** There is a slot at that relay: the first, again after it was lost, or with other addresses. */
  reserved(relay: string, addresses: readonly string[]): void
  /** The slot at that relay is gone, or has never been there; it is tried again in `retryMs`. */
  lost(relay: string, reason: string, retryMs: number): void
}

/** Slots at the relays that the user has named: kept, and got back when they are lost. */
export interface Slots {
  /** Addresses at which this peer can be called through relays; they change as slots come and go. */
  addresses(): Multiaddr[]
  /** Whether that relay may send somebody. */
  holds(relay: string): boolean
  /** Resolves when each relay has been asked once, whatever came of it. */
  readonly tried: Promise<void>
  stop(): void
}

export interface SlotsOptions {
  /** Each ends in the peer id of the relay. */
  relays: readonly Multiaddr[]
  store: SlotStore
  connections(relay: string): readonly Connection[]
  dial(address: Multiaddr, signal: AbortSignal): Promise<Connection>
  events: SlotEvents
  life: AbortSignal
}

export function keepSlots(options: SlotsOptions): Slots {
  const { store, life } = options
  const kept = options.relays.map((address) => new KeptSlot(address, options))
  store.addEventListener('relay:removed', ({ detail }) => {
    for (const slot of kept) if (slot.relay.equals(detail.relay)) slot.removed()
  })
  const tried = Promise.all(kept.map((slot) => slot.attempt())).then(() => undefined)
  const stop = () => {
    for (const slot of kept) slot.stop()
  }
  life.addEventListener('abort', stop, { once: true })
  return {
    tried,
    addresses: () => kept.flatMap((slot) => slot.addresses),
    holds: (relay) => kept.some((slot) => slot.relay.toString() === relay && slot.addresses.length > 0),
    stop,
  }
}

class KeptSlot {
  readonly relay: PeerId
  addresses: Multiaddr[] = []
  readonly #options: SlotsOptions
  readonly #address: Multiaddr
  #timer: NodeJS.Timeout | undefined
  #asking = false
  #failures = 0
  #stopped = false

  constructor(address: Multiaddr, options: SlotsOptions) {
    this.#address = address
    this.#options = options
    this.relay = peerIdFromString(peerIdIn(address) as string)
  }

  /** Asks for the slot, or for more time of it. Never rejects. */
  async attempt(): Promise<void> {
    if (this.#asking || this.#stopped) return
    clearTimeout(this.#timer)
    this.#asking = true
    const limit = deadline({ parents: [this.#options.life], ms: ATTEMPT_MS })
    try {
      await this.#ask(limit.signal)
    } catch (error) {
      this.#failed(error)
    } finally {
      limit.clear()
      this.#asking = false
    }
  }

  /** libp2p has given it up: the connection is gone, or the relay said no. */
  removed(): void {
    // An attempt under way says itself how it ends.
    if (!this.#asking) this.#failed(new Error('the connection to the relay was lost'))
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { store, events } = this.#options
    const connection = await this.#connection(signal)
    try {
      // Whoever does not speak the protocol is never asked again by libp2p; it may only have not begun to yet.
      const question = await connection.newStream(HOP, { signal })
      question.abort(new Error('served its purpose'))
      // libp2p would take the word of a clock for it that there is time left, and clocks jump.
      const held = store.getReservation(this.relay)
      if (held !== undefined) held.expire = 0n
      await store.addRelay(this.relay, 'configured')
    } catch (error) {
      // It may be a connection to a machine that is gone, over which the next attempt would fail too.
      if (reasonOf(error) === 'timeout') connection.abort(new Error('the relay does not answer'))
      throw error
    }
    const slot = store.getReservation(this.relay)
    if (this.#stopped || slot === undefined) throw new Error('the connection to the relay was lost')
    this.#failures = 0
    const addresses = addressesOf(slot.addrs, this.relay.toString())
    const news = String(addresses) !== String(this.addresses)
    this.addresses = addresses
    this.#later(renewIn(slot.expire))
    if (news) events.reserved(this.relay.toString(), addresses.map(String))
  }

  async #connection(signal: AbortSignal): Promise<Connection> {
    const open = this.#options.connections(this.relay.toString()).find(({ status }) => status === 'open')
    return open ?? this.#options.dial(this.#address, signal)
  }

  #failed(error: unknown): void {
    if (this.#stopped) return
    this.addresses = []
    const cap = Math.min(RETRY_MS * 2 ** Math.min(this.#failures++, 10), RETRY_CAP_MS)
    // Not all peers of a relay at once when it is back.
    const retryMs = Math.round(cap * (0.5 + Math.random() / 2))
    this.#later(retryMs)
    this.#options.events.lost(this.relay.toString(), refusalOf(error), retryMs)
  }

  #later(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.attempt(), ms)
    this.#timer.unref()
  }
}

/** Half of what is left, by a clock that may differ from the relay's. */
function renewIn(expires: bigint): number {
  const leftMs = Number(expires) * 1000 - Date.now()
  return leftMs <= 0 ? RENEW_MS : Math.min(Math.max(leftMs / 2, RENEW_LEAST_MS), RENEW_MS)
}

/** What the relay says of itself, the address first at which it was dialled; only what leads through that relay. */
function addressesOf(addrs: readonly Uint8Array[], relay: string): Multiaddr[] {
  return addrs
    .slice(0, MAX_TOLD)
    .map((bytes) => multiaddr(bytes).encapsulate('/p2p-circuit'))
    .filter((address) => relayIn(address) === relay && address.toString().length <= MAX_ADDRESS_LENGTH)
    .slice(0, MAX_ADDRESSES)
}

/** libp2p gives the answer of a relay as text only. */
function refusalOf(error: unknown): string {
  const reason = reasonOf(error)
  if (/PERMISSION_DENIED/.test(reason)) return 'denied: the relay does not know this peer'
  if (/RESERVATION_REFUSED/.test(reason)) return 'the relay is full'
  return reason
}
