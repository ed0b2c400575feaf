import { HermesError } from '@hermes-peer/protocol'
import type { AbortOptions } from '@libp2p/interface'
import { MemoryDatastore } from 'datastore-core'
import { type Datastore, Key, type KeyQuery, type Pair, type Query } from 'interface-datastore'

/** Where kad-dht keeps who provides what: `<this>/<hash of the capability>/<peer id>`. */
const PROVIDERS = '/dht/provider'
/** Announcements of one peer, of one capability, and in all; further ones are refused. Its own are not counted. */
const OF_PEER = 512
const OF_CAPABILITY = 512
const MOST = 16_384

/**
 * The store of a node, in memory: bounded in what others can fill, and quick to find the providers of one capability, which the general
 * one looks for among everything. Announcements leave it when kad-dht removes the expired ones, each minute.
 */
export function createDhtStore(ownPeerId: string): Datastore {
  return new DhtStore(ownPeerId)
}

class DhtStore extends MemoryDatastore {
  readonly #own: string
  /** By capability, then by peer id. */
  readonly #providers = new Map<string, Map<string, Uint8Array>>()
  readonly #byPeer = new Map<string, number>()
  #count = 0

  constructor(ownPeerId: string) {
    super()
    this.#own = ownPeerId
  }

  override put(key: Key, value: Uint8Array, options?: AbortOptions): Key {
    const at = placeOf(key)
    if (!at) return super.put(key, value, options) as Key
    const { capability, peerId } = at
    const peers = this.#providers.get(capability) ?? new Map<string, Uint8Array>()
    if (!peers.has(peerId)) {
      const own = this.#byPeer.get(peerId) ?? 0
      const full = own >= OF_PEER || peers.size >= OF_CAPABILITY || this.#count >= MOST
      if (full && peerId !== this.#own)
        throw new HermesError('QUEUE_FULL', { message: 'no room for more announcements' })
      this.#byPeer.set(peerId, own + 1)
      this.#count++
    }
    peers.set(peerId, value)
    this.#providers.set(capability, peers)
    return key
  }

  override get(key: Key, options?: AbortOptions): Uint8Array {
    const at = placeOf(key)
    const value = at && this.#providers.get(at.capability)?.get(at.peerId)
    // Of what is not there the general store tells as callers expect it.
    return value ?? (super.get(key, options) as Uint8Array)
  }

  override has(key: Key, options?: AbortOptions): boolean {
    const at = placeOf(key)
    return at ? this.#providers.get(at.capability)?.has(at.peerId) === true : (super.has(key, options) as boolean)
  }

  override delete(key: Key, options?: AbortOptions): void {
    const at = placeOf(key)
    if (!at) {
      super.delete(key, options)
      return
    }
    const peers = this.#providers.get(at.capability)
    if (!peers?.delete(at.peerId)) return
    if (peers.size === 0) this.#providers.delete(at.capability)
    const left = (this.#byPeer.get(at.peerId) ?? 1) - 1
    if (left === 0) this.#byPeer.delete(at.peerId)
    else this.#byPeer.set(at.peerId, left)
    this.#count--
  }

  override *_all(query: Query, options?: AbortOptions): Generator<Pair> {
    const { prefix = '' } = query
    if (!prefix.startsWith(PROVIDERS)) yield* super._all(query, options) as Generator<Pair>
    if (!prefix.startsWith(PROVIDERS) && !PROVIDERS.startsWith(prefix)) return
    const [capability] = prefix.slice(PROVIDERS.length + 1).split('/')
    const wanted = capability ? [[capability, this.#providers.get(capability)] as const] : [...this.#providers]
    for (const [name, peers] of wanted) {
      for (const [peerId, value] of [...(peers ?? [])]) {
        options?.signal?.throwIfAborted()
        yield { key: new Key(`${PROVIDERS}/${name}/${peerId}`), value }
      }
    }
  }

  override *_allKeys({ prefix }: KeyQuery, options?: AbortOptions): Generator<Key> {
    for (const { key } of this._all(prefix === undefined ? {} : { prefix }, options)) yield key
  }
}

function placeOf(key: Key): { capability: string; peerId: string } | undefined {
  const text = key.toString()
  if (!text.startsWith(`${PROVIDERS}/`)) return undefined
  const [capability, peerId, ...more] = text.slice(PROVIDERS.length + 1).split('/')
  return capability && peerId && more.length === 0 ? { capability, peerId } : undefined
}
