/**
 * The seam to the transport. `network/libp2p` implements it over TCP, `@hermes-peer/testkit` in memory; nothing above
 * this folder knows which one it runs on.
 *
 * Everything that needs time or randomness above this seam uses `Clock` and `Random`; what happens below it is the
 * transport's own business.
 */
export interface Network {
  /** The transport identity (libp2p peer id, base58btc of the Ed25519 identity multihash), authenticated on every connection. */
  readonly peerId: string
  /** Starts listening. Throws a `HermesError` (`ADDRESS_IN_USE`, `INVALID_ADDRESS`, …) that names the address. */
  start(): Promise<void>
  /** Listens on further addresses while it runs; absent where that makes no sense. Throws as `start` does. */
  listen?(addresses: readonly string[]): Promise<void>
  /** Closes every connection and listener; idempotent. */
  stop(): Promise<void>
  /** Multiaddrs that a caller can use, ending in `/p2p/<peerId>`; empty before `start`. */
  addresses(): readonly string[]

  /** Serves a protocol. The handler must call `channel.listen` before it returns. */
  handle(protocol: string, accept: (channel: Channel) => void): void
  /**
   * Opens a channel to a peer, dialling it when there is no connection yet.
   * Rejects with `HermesError` `PEER_UNREACHABLE` whose `details.tried` lists each address with its own reason
   * (`refused`, `timeout`, `wrong peer`, …), or with the signal's reason.
   */
  open(target: DialTarget, protocol: string, options: { signal: AbortSignal }): Promise<Channel>
  /** Drops the connections to a peer at once. */
  hangUp(peerId: string): Promise<void>

  /**
   * When four fifths of the places for connections are taken: closes the oldest connections, over 5 s old, of peers that
   * `keep` does not name, until that is no longer so. Otherwise does nothing.
   */
  relieve(keep: (peerId: string) => boolean): void

  /** Announces in the DHT that this peer provides `cid` (binary CID), and keeps announcing it until `unprovide`. */
  provide(cid: Uint8Array, options: { signal: AbortSignal }): Promise<void>
  unprovide(cid: Uint8Array): Promise<void>
  /**
   * Peers that say they provide `cid`, as they are found; never includes this peer itself. A hint only: nothing in it is proven.
   * Rejects with `DIRECTORY_UNREACHABLE` when it ends, also by the signal, before any other peer has answered.
   */
  findProviders(cid: Uint8Array, options: { signal: AbortSignal }): AsyncIterable<FoundPeer>

  /**
   * Stores a signed record in the DHT, at the peers nearest to its key, `/<kind>/<id>`, in place of an older one. Resolves with the
   * number of peers that took it. Rejects with `INVALID_OPTION` for a kind that is not known here, what the check of its kind throws,
   * `EXPIRED` when a newer one is known, and `DIRECTORY_UNREACHABLE` when nobody took it. The DHT does not keep it up: put it again.
   */
  putRecord(key: string, value: Uint8Array, options: { signal: AbortSignal }): Promise<number>
  /**
   * The newest record of a key that could be found before the signal, checked; undefined when others have answered and none has one.
   * Rejects with `INVALID_OPTION`, and with `DIRECTORY_UNREACHABLE` when nobody answered.
   */
  getRecord(key: string, options: { signal: AbortSignal }): Promise<Uint8Array | undefined>

  /**
   * Joins a gossip topic. `receive` judges each message before it travels on: `accept` passes it on, `ignore` does not,
   * `reject` also counts against whoever sent it.
   */
  subscribe(topic: string, receive: (message: Gossip) => Verdict): () => void
  /** Sends to a topic (without having to be subscribed); resolves with the number of peers it went to, 0 included. */
  publish(topic: string, data: Uint8Array): Promise<number>

  /** Registers the single listener for transport events; the last one wins. */
  observe(events: NetworkEvents): void
}

export interface DialTarget {
  /** The peer that must answer; another one at that address is refused. Absent: whoever answers at `addresses[0]`. */
  peerId?: string
  /** Peer id of this side's node to open it from, where there are several. Default: the newest. */
  from?: string
  /** Multiaddrs to try; may be empty when the peer is already connected or known to the transport. */
  addresses: readonly string[]
}

export interface FoundPeer {
  peerId: string
  addresses: readonly string[]
  /** The peer whose word that is, where one is known. */
  toldBy?: string
}

export interface Gossip {
  /** Who handed it to us (not who made it). */
  from: string
  data: Uint8Array
}

export type Verdict = 'accept' | 'ignore' | 'reject'

export interface NetworkEvents {
  /** A transport connection to that peer exists now (first one only). */
  connected?(peerId: string): void
  /** The last transport connection to that peer is gone. */
  disconnected?(peerId: string): void
  /** The DHT has gained a peer: announcements that reached nobody are worth repeating. */
  routable?(): void
}

/** One ordered, reliable byte stream between two authenticated peers. Message boundaries are not kept. */
export interface Channel {
  /** Authenticated by the transport. */
  readonly remotePeer: string
  /** Multiaddr of the other end as this side sees it, for logs and for the loopback rule. */
  readonly remoteAddress: string
  readonly direction: 'inbound' | 'outbound'
  /** Bytes given to `send` that are still on this side for want of room at the other; it falls as the other side reads. */
  readonly unsentBytes: number
  /** Sets the one listener. Bytes that came before are delivered then. */
  listen(listener: ChannelListener): void
  /**
   * Hands bytes over, never blocks. `false`: hold back until `drained`. Bytes are not copied: the caller must not
   * change them afterwards. After close or abort it does nothing and returns false.
   */
  send(bytes: Uint8Array): boolean
  /** Stops reading: the other side's writes back up. */
  pause(): void
  resume(): void
  /** Ends the stream after what was sent has been flushed. */
  close(): Promise<void>
  /** Resets the stream at once; `closed` is called with the error, on this side too. */
  abort(error: Error): void
}

export interface ChannelListener {
  data(bytes: Uint8Array): void
  drained(): void
  /** Called exactly once. `error` is absent after an orderly end from both sides or from the other side. */
  closed(error?: Error): void
}
