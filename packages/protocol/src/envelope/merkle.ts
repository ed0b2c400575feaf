import { concat, toHex, uvarint } from '../bytes/parts.ts'
import { Reader } from '../bytes/reader.ts'
import { inDomain } from '../crypto/domains.ts'
import type { PublicKey, SigningKey } from '../crypto/keys.ts'
import { sha256 } from '../crypto/sha256.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS } from '../limits.ts'
import { siblingCount, splitPoint } from './frame.ts'

const NODE = Uint8Array.of(1)

/** Root of the RFC 6962 tree over leaf hashes (which carry the leaf prefix already). */
export function merkleRoot(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 1) return leaves[0] as Uint8Array
  const left = splitPoint(leaves.length)
  return sha256(NODE, merkleRoot(leaves.slice(0, left)), merkleRoot(leaves.slice(left)))
}

/** The siblings from leaf `index` up to the root, nearest first. */
export function auditPath(leaves: readonly Uint8Array[], index: number): Uint8Array[] {
  if (leaves.length <= 1) return []
  const left = splitPoint(leaves.length)
  return index < left
    ? [...auditPath(leaves.slice(0, left), index), merkleRoot(leaves.slice(left))]
    : [...auditPath(leaves.slice(left), index - left), merkleRoot(leaves.slice(0, left))]
}

function rootOf(leaf: Uint8Array, index: number, count: number, siblings: readonly Uint8Array[]): Uint8Array {
  if (count <= 1) return leaf
  const left = splitPoint(count)
  const top = siblings[siblings.length - 1] as Uint8Array
  const rest = siblings.slice(0, -1)
  return index < left
    ? sha256(NODE, rootOf(leaf, index, left, rest), top)
    : sha256(NODE, top, rootOf(leaf, index - left, count - left, rest))
}

/** What a batch signs: uvarint(count) ‖ root, under the domain of batches. */
function signedBytes(count: number, root: Uint8Array): Uint8Array {
  return inDomain('batch', concat([uvarint(count), root]))
}

/** Signs 1..16 leaves at once. */
export function signBatch(leaves: readonly Uint8Array[], key: SigningKey): Uint8Array {
  if (leaves.length < 1 || leaves.length > LIMITS.batchCount) {
    throw new HermesError('MALFORMED', {
      message: `a batch of ${leaves.length} envelopes, 1 to ${LIMITS.batchCount} are allowed`,
    })
  }
  return key.sign(signedBytes(leaves.length, merkleRoot(leaves)))
}

export function verifyBatch(leaves: readonly Uint8Array[], signature: Uint8Array, key: PublicKey): boolean {
  if (leaves.length < 1 || leaves.length > LIMITS.batchCount) return false
  return key.verify(signedBytes(leaves.length, merkleRoot(leaves)), signature)
}

/** The proof of one envelope of a batch: signature(64) ‖ uvarint(index) ‖ uvarint(count) ‖ siblings. */
export function proofOf(leaves: readonly Uint8Array[], index: number, signature: Uint8Array): Uint8Array {
  return concat([signature, uvarint(index), uvarint(leaves.length), ...auditPath(leaves, index)])
}

export interface BatchProof {
  readonly signature: Uint8Array
  readonly index: number
  readonly count: number
  readonly siblings: readonly Uint8Array[]
}

/** Throws `BAD_PROOF` unless it holds exactly the siblings that index and count imply. */
export function decodeProof(bytes: Uint8Array): BatchProof {
  try {
    const reader = new Reader(bytes)
    const signature = reader.take(64, 'the signature')
    const index = reader.uvarint('the index')
    const count = reader.uvarint('the count')
    if (count < 1 || count > LIMITS.batchCount || index >= count) throw new Error(`index ${index} of ${count}`)
    const siblings = Array.from({ length: siblingCount(index, count) }, () => reader.take(32, 'a sibling'))
    reader.end('the siblings')
    return { signature, index, count, siblings }
  } catch (cause) {
    throw new HermesError('BAD_PROOF', { cause })
  }
}

/** Remembers roots whose signature held, so that the other envelopes of a batch cost no signature check. */
export interface RootMemory {
  has(root: string): boolean
  add(root: string): void
}

/** Hashes from the leaf up to the root, always, and checks the signature over it unless `memory` holds this very one. */
export function verifyProof(leaf: Uint8Array, proof: BatchProof, key: PublicKey, memory?: RootMemory): boolean {
  const root = rootOf(leaf, proof.index, proof.count, proof.siblings)
  const name = `${key.fingerprint} ${proof.count} ${toHex(root)} ${toHex(proof.signature)}`
  if (memory?.has(name)) return true
  if (!key.verify(signedBytes(proof.count, root), proof.signature)) return false
  memory?.add(name)
  return true
}
