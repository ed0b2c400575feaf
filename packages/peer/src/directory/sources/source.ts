import type { Clock } from '../../clock.ts'
import type { FoundPeer, Network } from '../../network/network.ts'
import type { Random } from '../../random.ts'

/** What a peer tells a directory of itself. */
export interface Registration {
  /** For people who look into the directory; nothing is decided by it. */
  readonly agentId: string
  readonly peerId: string
  /** Multiaddrs, at most 16 are kept. */
  readonly addresses: readonly string[]
  /** Names of capabilities. */
  readonly capabilities: readonly string[]
  /** It is forgotten after this, ms, unless it is renewed. */
  readonly leaseMs: number
}

/**
 * One place where peers write down what they offer, and where others look it up: the DHT, a file, a Redis, memory. It sees no
 * message. What it says is a hint and proves nothing: the handshake tells who answers at an address, the signed manifest what it
 * offers.
 */
export interface DirectorySource {
  /** For events, errors and explanations, like `dht` or `redis 10.0.0.5:6379`; without secrets. */
  readonly name: string
  /** Whether registrations run out there unless `renew` is called; else the source keeps them up by itself. */
  readonly leased: boolean
  /**
   * Once, before all others: what needs no other machine, like reading a file. Rejects with `INVALID_OPTION` when the source is set up
   * wrongly. Never waits for a server.
   */
  open?(): Promise<void>
  /** Writes down what this peer offers, in place of what it wrote before. Rejects with `DIRECTORY_UNREACHABLE`. */
  register(registration: Registration, options: { signal: AbortSignal }): Promise<void>
  /** Extends the lease of the last registration, and makes it anew where it was lost. Rejects with `DIRECTORY_UNREACHABLE`. */
  renew(options: { signal: AbortSignal }): Promise<void>
  /** Takes the registration back, so far as the source can. Rejects with `DIRECTORY_UNREACHABLE`. */
  unregister(options: { signal: AbortSignal }): Promise<void>
  /**
   * Peers that say they offer a capability, as they are found; never the one that asks. Ends after the last: none is an answer.
   * Rejects with `DIRECTORY_UNREACHABLE` when the source could not be asked before the signal.
   */
  find(capability: string, options: { signal: AbortSignal }): AsyncIterable<FoundPeer>
  /** Ends timers and connections; idempotent. Everything afterwards rejects with `STOPPED`. */
  close(): Promise<void>
}

/** What a source is given of the peer that it works for. */
export interface DirectoryContext {
  readonly networkName: string
  readonly peerId: string
  readonly clock: Clock
  readonly random: Random
  readonly network: Pick<Network, 'provide' | 'unprovide' | 'findProviders'>
  /** Whether there should be others in the network: this peer was given addresses to join through. */
  readonly seeded: boolean
  /** Tells the operator. */
  report(text: string): void
}

/** Makes one peer's access to a directory; what the option `directories` lists. */
export type DirectoryFactory = (context: DirectoryContext) => DirectorySource

/** Addresses kept of one peer. */
export const MOST_ADDRESSES = 16
/** Peers that a source names for one capability: those that renewed last, where it knows. */
export const MOST_FOUND = 64
