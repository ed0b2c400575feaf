import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  auditPath,
  type BatchProof,
  decodeProof,
  inDomain,
  merkleRoot,
  type PublicKey,
  proofOf,
  type RootMemory,
  sha256,
  signBatch,
  toHex,
  verifyBatch,
  verifyProof,
} from '../../src/index.ts'
import { hash, keyOf, RUNS, UNTIL_NOTICED, verdictOf } from './support.ts'

const KEY = keyOf('pm')
const NODE = Uint8Array.of(1)
const leaves = fc.array(hash, { minLength: 1, maxLength: 16, size: 'max' })
/** Leaves and a place among them. */
const placed = leaves.chain((list) => fc.record({ list: fc.constant(list), index: fc.nat(list.length - 1) }))

/** The tree built from below, pair by pair, an odd one carried up: another way to the same tree. */
function rootFromBelow(list: readonly Uint8Array[]): Uint8Array {
  let level = [...list]
  while (level.length > 1) {
    const above: Uint8Array[] = []
    for (let i = 0; i < level.length; i += 2) {
      const [left, right] = level.slice(i, i + 2) as [Uint8Array, Uint8Array?]
      above.push(right ? sha256(NODE, left, right) : left)
    }
    level = above
  }
  return level[0] as Uint8Array
}

type Verify = (leaf: Uint8Array, proof: BatchProof, key: PublicKey) => boolean

const holds = (verify: Verify, leaf: Uint8Array, proof: Uint8Array): boolean => {
  let read: BatchProof | undefined
  const verdict = verdictOf(() => {
    read = decodeProof(proof)
  })
  if (verdict !== 'accepted') expect(verdict).toBe('BAD_PROOF')
  return read !== undefined && verify(leaf, read, KEY.publicKey)
}

/** A proof holds for its leaf and place alone, and no bit of it can change. */
const provesOneLeaf = (verify: Verify) =>
  fc.property(placed, hash, fc.nat(), fc.nat(7), ({ list, index }, other, at, bit) => {
    const proof = proofOf(list, index, signBatch(list, KEY))
    expect(holds(verify, list[index] as Uint8Array, proof)).toBe(true)
    fc.pre(toHex(other) !== toHex(list[index] as Uint8Array))
    expect(holds(verify, other, proof)).toBe(false)
    const place = at % proof.length
    const changed = proof.map((byte, i) => (i === place ? byte ^ (1 << bit) : byte))
    expect(holds(verify, list[index] as Uint8Array, changed)).toBe(false)
  })

const siblingsFit = ({ signature, index, count, siblings }: BatchProof): boolean =>
  verdictOf(() => decodeProof(Buffer.concat([signature, Uint8Array.of(index, count), ...siblings]))) === 'accepted'

const boundToItsPlace = (verify: Verify) =>
  fc.property(placed, fc.nat(15), ({ list, index }, other) => {
    fc.pre(other < list.length && other !== index && new Set(list.map(toHex)).size === list.length)
    const proof = decodeProof(proofOf(list, index, signBatch(list, KEY)))
    const moved = { ...proof, index: other }
    if (siblingsFit(moved)) expect(verify(list[index] as Uint8Array, moved, KEY.publicKey)).toBe(false)
    expect(verify(list[other] as Uint8Array, proof, KEY.publicKey)).toBe(false)
  })

describe('the tree of a batch', () => {
  it('has the root that pairing from below gives', () => {
    fc.assert(
      fc.property(leaves, (list) => {
        expect(toHex(merkleRoot(list))).toBe(toHex(rootFromBelow(list)))
      }),
      RUNS,
    )
  })

  it('is signed with its count: a tree of fewer leaves cannot pass for it', () => {
    fc.assert(
      fc.property(leaves, fc.nat(15), (list, at) => {
        const signature = signBatch(list, KEY)
        expect(verifyBatch(list, signature, KEY.publicKey)).toBe(true)
        const other = [...list]
        other.splice(at % list.length, 1)
        expect(verifyBatch(other, signature, KEY.publicKey)).toBe(false)
        expect(verifyBatch([merkleRoot(list)], signature, KEY.publicKey)).toBe(list.length === 1)
        expect(verifyBatch(list, signature, keyOf('coder').publicKey)).toBe(false)
      }),
      RUNS,
    )
  })
})

describe('a batch proof', () => {
  it('proves one leaf at one place, and no bit of it can change', () => {
    fc.assert(provesOneLeaf(verifyProof), RUNS)
  })

  it('holds exactly the siblings that count and index imply', () => {
    fc.assert(
      fc.property(placed, fc.uint8Array({ minLength: 1, maxLength: 64 }), ({ list, index }, more) => {
        const proof = proofOf(list, index, signBatch(list, KEY))
        expect(decodeProof(proof).siblings.map(toHex)).toEqual(auditPath(list, index).map(toHex))
        for (const length of [0, 63, 64, 65, proof.length - 1]) {
          expect(verdictOf(() => decodeProof(proof.subarray(0, length)))).toBe('BAD_PROOF')
        }
        expect(verdictOf(() => decodeProof(Buffer.concat([proof, more])))).toBe('BAD_PROOF')
      }),
      RUNS,
    )
  })

  it('is bound to its place, also where another has as many siblings', () => {
    fc.assert(boundToItsPlace(verifyProof), RUNS)
  })

  it('is hashed up to the root also when that root is remembered, which happens only once it has been verified', () => {
    fc.assert(
      fc.property(placed, hash, ({ list, index }, other) => {
        const roots = new Set<string>()
        const memory: RootMemory = { has: (root) => roots.has(root), add: (root) => roots.add(root) }
        const leaf = list[index] as Uint8Array
        const proof = decodeProof(proofOf(list, index, signBatch(list, KEY)))
        const forged = { ...proof, signature: KEY.sign(other) }
        expect(verifyProof(leaf, forged, KEY.publicKey, memory)).toBe(false)
        expect(roots.size).toBe(0)
        expect(verifyProof(leaf, proof, KEY.publicKey, memory)).toBe(true)
        expect(roots.size).toBe(1)
        expect(verifyProof(leaf, proof, KEY.publicKey, memory)).toBe(true)
        expect(verifyProof(leaf, forged, KEY.publicKey, memory)).toBe(false)
        expect(verifyProof(leaf, proof, keyOf('coder').publicKey, memory)).toBe(false)
        if (toHex(other) !== toHex(leaf)) expect(verifyProof(other, proof, KEY.publicKey, memory)).toBe(false)
        expect(roots.size).toBe(1)
      }),
      RUNS,
    )
  })
})

describe('the checks above', () => {
  it('notice a verifier that does not hash up to the root', () => {
    // It takes the root from what the signer signed last, so that any leaf passes under a good signature.
    const careless: Verify = (leaf, proof, key) => {
      if (verifyProof(leaf, proof, key)) return true
      const { signature, index, count } = proof
      return signature.length === 64 && index < count && key.verify(signedOf(proof), signature)
    }
    // The last tree that was signed, as such a verifier would find it in a cache by its signature.
    const signed = new Map<string, Uint8Array>()
    const signedOf = ({ signature }: BatchProof) => signed.get(toHex(signature)) ?? new Uint8Array(0)
    const remembering = fc.property(placed, hash, ({ list, index }, other) => {
      const signature = signBatch(list, KEY)
      signed.set(toHex(signature), inDomain('batch', Buffer.concat([Uint8Array.of(list.length), merkleRoot(list)])))
      expect(holds(careless, other, proofOf(list, index, signature))).toBe(false)
    })
    expect(() => fc.assert(remembering, UNTIL_NOTICED)).toThrow('Property failed')
  })

  it('notice a verifier that does not look at the signature', () => {
    const trusting: Verify = (leaf, proof) => proof.siblings.length >= 0 && leaf.length === 32
    expect(() => fc.assert(provesOneLeaf(trusting), UNTIL_NOTICED)).toThrow('Property failed')
  })

  it('notice a verifier that ignores the place', () => {
    const placeless: Verify = (leaf, proof, key) =>
      Array.from({ length: proof.count }, (_, index) => ({ ...proof, index }))
        .filter((other) => siblingsFit(other))
        .some((other) => verifyProof(leaf, other, key))
    expect(() => fc.assert(boundToItsPlace(placeless), UNTIL_NOTICED)).toThrow('Property failed')
  })
})
