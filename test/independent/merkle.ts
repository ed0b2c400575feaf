import { type Cursor, cursor, domain, join, uvarint } from './bytes.ts'
import { sha256, type VerifyingKey } from './ed25519.ts'
import { Refused } from './refused.ts'

const MAX_COUNT = 16
const NODE = Uint8Array.of(0x01)

/** RFC 6962, 2.1: the left side of a tree is the largest power of two below its size. */
const leftSize = (size: number): number => {
  let power = 1
  while (power * 2 < size) power *= 2
  return power
}

const node = (left: Uint8Array, right: Uint8Array): Uint8Array => sha256(NODE, left, right)

export function treeRoot(leaves: Uint8Array[]): Uint8Array {
  const [only] = leaves
  if (only === undefined) throw new Refused('frame', 'a tree without leaves')
  if (leaves.length === 1) return only
  const split = leftSize(leaves.length)
  return node(treeRoot(leaves.slice(0, split)), treeRoot(leaves.slice(split)))
}

/** Hashes a leaf up to the root, taking from the siblings exactly those that the position implies. */
function climb(leaf: Uint8Array, index: number, size: number, next: () => Uint8Array): Uint8Array {
  if (size === 1) return leaf
  const split = leftSize(size)
  if (index < split) {
    const own = climb(leaf, index, split, next)
    return node(own, next())
  }
  const own = climb(leaf, index - split, size - split, next)
  return node(next(), own)
}

export function readCount(at: Cursor, fault: 'frame' | 'proof'): number {
  const count = at.uvarint()
  if (count < 1 || count > MAX_COUNT) throw new Refused(fault, `a batch of ${count}`)
  return count
}

export interface Proof {
  signature: Uint8Array
  index: number
  count: number
  siblings: Uint8Array[]
}

/** signature(64) ‖ uvarint(index) ‖ uvarint(count) ‖ siblings; how many siblings follow from index and count. */
export function readProof(at: Cursor): Proof {
  const signature = at.take(64)
  const index = at.uvarint()
  const count = readCount(at, 'proof')
  if (index >= count) throw new Refused('proof', `leaf ${index} of ${count}`)
  const siblings: Uint8Array[] = []
  climb(new Uint8Array(32), index, count, () => {
    const sibling = at.take(32)
    siblings.push(sibling)
    return sibling
  })
  return { signature, index, count, siblings }
}

export const batchBytes = (count: number, root: Uint8Array): Uint8Array => join(domain('batch'), uvarint(count), root)

export function proves(key: VerifyingKey, leaf: Uint8Array, proof: Proof): boolean {
  const siblings = cursor(join(...proof.siblings), 'signature')
  const root = climb(leaf, proof.index, proof.count, () => siblings.take(32))
  siblings.end()
  return key.verifies(batchBytes(proof.count, root), proof.signature)
}

export const coversAll = (key: VerifyingKey, leaves: Uint8Array[], signature: Uint8Array): boolean =>
  key.verifies(batchBytes(leaves.length, treeRoot(leaves)), signature)
