import { type PublicKey, publicKey, toHex } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'

/** Admits a raw public key, as `publicKey` does: throws `BAD_KEY`. */
export type KeyCheck = (raw: Uint8Array) => PublicKey

/** Keys remembered as checked: the curve check costs a millisecond. */
const MOST_KEYS = 10_000

/** A check that remembers what it has admitted. */
export function createKeyCheck(): KeyCheck {
  // By size rather than by `max`, which would take the memory of all of them at once.
  const checked = new LRUCache<string, PublicKey>({ maxSize: MOST_KEYS, sizeCalculation: () => 1 })
  return (raw) => {
    const name = toHex(raw)
    let found = checked.get(name)
    if (!found) {
      found = publicKey(raw)
      checked.set(name, found)
    }
    return found
  }
}
