import {
  concat,
  encodeBatch,
  encodeProven,
  fromHex,
  inDomain,
  merkleRoot,
  proofOf,
  sha256,
  signBatch,
  toHex,
  utf8,
} from '../../src/index.ts'
import { envelopeOf, idOf, KEYS, requestDraft, type Vector } from './scene.ts'

/** Sixteen leaf hashes (of nothing real); a tree of n is over the first n. */
const LEAVES = Array.from({ length: 16 }, (_, index) => sha256(utf8(`leaf ${index}`)))

function tree(count: number): Vector {
  const leaves = LEAVES.slice(0, count)
  const root = merkleRoot(leaves)
  const signature = signBatch(leaves, KEYS.pm)
  return {
    count,
    root: toHex(root),
    signed: toHex(inDomain('batch', concat([Uint8Array.of(count), root]))),
    signature: toHex(signature),
    proofs: leaves.map((_, index) => toHex(proofOf(leaves, index, signature))),
  }
}

/** A batch as it goes over a link, and each of its envelopes as it proves itself alone. */
function batch(count: number): Vector {
  const envelopes = Array.from({ length: count }, (_, index) =>
    envelopeOf(requestDraft({ message_id: idOf('msg', `batch ${count} ${index}`), sequence: index + 1 }), {
      input: { 第: index },
    }),
  )
  const leaves = envelopes.map(({ leaf }) => fromHex(leaf))
  const signature = signBatch(leaves, KEYS.pm)
  return {
    name: `a batch of ${count}`,
    signer: 'pm',
    leaves: envelopes.map(({ leaf }) => leaf),
    bytes: toHex(encodeBatch({ signature, envelopes })),
    alone: envelopes.map(({ header, payload }, index) =>
      toHex(encodeProven({ header, payload, proof: proofOf(leaves, index, signature), hops: [] })),
    ),
  }
}

function refused(): Vector[] {
  const leaves = LEAVES.slice(0, 5)
  const [first, , third] = leaves as [Uint8Array, Uint8Array, Uint8Array]
  const signature = signBatch(leaves, KEYS.pm)
  const good = proofOf(leaves, 2, signature)
  const change = (at: number, value: number) => Uint8Array.from(good, (byte, index) => (index === at ? value : byte))
  const flip = (at: number) => change(at, (good[at] as number) ^ 1)
  const siblings = (order: number[]) =>
    [0, 1, 2].map((k) => good.subarray(66 + 32 * (order[k] ?? 0), 98 + 32 * (order[k] ?? 0)))
  const no = (name: string, proof: Uint8Array, leaf: Uint8Array = third): Vector => {
    return { name, leaf: toHex(leaf), proof: toHex(proof), code: 'BAD_PROOF' }
  }
  const root = merkleRoot(leaves)
  return [
    no('another leaf', good, first),
    no('the root as a leaf of its own', proofOf([root], 0, signature), root),
    no('a changed signature', flip(0)),
    no('a changed first sibling', flip(66)),
    no('a changed last sibling', flip(66 + 95)),
    no('another index', change(64, 1)),
    no('the index of a leaf with fewer siblings', change(64, 4)),
    no('another count with as many siblings', change(65, 6)),
    no('another count with more siblings', change(65, 16)),
    no('an index beyond the count', change(64, 5)),
    no('count 0', change(65, 0)),
    no('count 17', change(65, 17)),
    no('siblings in another order', concat([good.subarray(0, 66), ...siblings([2, 1, 0])])),
    no('a sibling too few', good.subarray(0, 130)),
    no('a sibling too many', concat([good, new Uint8Array(32)])),
    no('a byte too many', concat([good, new Uint8Array(1)])),
    no('no bytes', new Uint8Array(0)),
    no('a count with needless bytes', concat([good.subarray(0, 65), Uint8Array.of(0x85, 0), good.subarray(66)])),
    no('signed by another key', proofOf(leaves, 2, signBatch(leaves, KEYS.stranger))),
    no('signed for a tree of another count', proofOf(leaves, 2, signBatch(LEAVES.slice(0, 4), KEYS.pm))),
    no(
      'the root signed as an envelope',
      proofOf(leaves, 2, KEYS.pm.sign(inDomain('envelope', concat([Uint8Array.of(5), root])))),
    ),
    no('the root signed without the count', proofOf(leaves, 2, KEYS.pm.sign(inDomain('batch', root)))),
  ]
}

export function merkleVectors(): Vector {
  return {
    about:
      'The tree over the leaves of a batch (RFC 6962, node prefix 0x01), signed by `pm`: for each count the root, the bytes that are signed, and the proof of each leaf. `batches`: real envelopes as tag 2, and each alone as tag 1. All hex.',
    leaves: LEAVES.map(toHex),
    trees: LEAVES.map((_, index) => tree(index + 1)),
    batches: [batch(1), batch(3), batch(16)],
    refused: refused(),
  }
}
