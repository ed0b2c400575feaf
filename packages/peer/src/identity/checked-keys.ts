import { type PublicKey, publicKey, toHex } from '@hermes-peer/protocol'
import { LRUCache } from 'lru-cache'

/** Public keys remembered as checked: the curve check costs a millisecond. */
const MOST_KEYS = 10_000

/** Checks each key once. One per peer: what one of them remembers is no business of another. */
export function createCheckedKeys(): (raw: Uint8Array) => PublicKey {
  const checked = new LRUCache<string, PublicKey>({ max: MOST_KEYS })
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
