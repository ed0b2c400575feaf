import { describe, expect, it } from 'vitest'
import {
  auditPath,
  bindPayload,
  decodeFrame,
  decodeHeader,
  decodeHop,
  decodePayload,
  decodeProof,
  encodeBatch,
  encodeHeader,
  encodePayload,
  encodeProven,
  encodeSingle,
  type Frame,
  HermesError,
  inDomain,
  leafOf,
  MAX_FRAME,
  merkleRoot,
  proofOf,
  Reader,
  SIGNED_THINGS,
  type SignedHop,
  signBatch,
  signedBytesOf,
  signingKey,
  toHex,
  verifyBatch,
  verifyEnvelope,
  verifyHops,
  verifyPayload,
  verifyProof,
} from '../../src/index.ts'
import { bytesOf } from './scene.ts'
import { expected, knownKeys, type Read, read, verdicts } from './support.ts'

const unhex = (text: string) => Buffer.from(text, 'hex')
const keys = knownKeys()
const keyOf = (agentId: string) => keys.get(agentId)

function frameOf(vector: Read): Frame {
  const reader = new Reader(bytesOf(vector.bytes))
  const body = reader.part(MAX_FRAME, 'the frame')
  reader.end('the frame')
  return decodeFrame(body)
}

const shownHops = (hops: readonly SignedHop[]) =>
  hops.map(({ body, signature }) => ({ json: toHex(body), signature: toHex(signature) }))

function shown(frame: Frame): object {
  if (frame.tag === 2) {
    const envelopes = frame.envelopes.map(({ header, payload }) => ({ header: toHex(header), payload: toHex(payload) }))
    return { tag: 2, signature: toHex(frame.signature), envelopes }
  }
  const parts = {
    tag: frame.tag,
    header: toHex(frame.header),
    payload: toHex(frame.payload),
    hops: shownHops(frame.hops),
  }
  return frame.tag === 0 ? { ...parts, signature: toHex(frame.signature) } : { ...parts, proof: toHex(frame.proof) }
}

function encoded(frame: Frame): Uint8Array {
  if (frame.tag === 2) return encodeBatch(frame)
  return frame.tag === 0 ? encodeSingle(frame) : encodeProven(frame)
}

describe('frames', () => {
  const { accepted, refused } = read('frames')

  it.each(accepted as Read[])('are cut and put together: $name', ({ name: _, bytes, ...parts }) => {
    const frame = frameOf({ bytes })
    expect(shown(frame)).toEqual(parts)
    expect(toHex(encoded(frame))).toBe(bytes)
  })

  it('are refused when they are not whole', () => {
    expect(verdicts(refused, frameOf)).toEqual(expected(refused))
  })
})

describe('headers', () => {
  const { accepted, refused } = read('headers')

  it.each(accepted as Read[])('are read, and written where they are ours: $name', ({ draft, text, header }) => {
    expect(decodeHeader(Buffer.from(text))).toEqual(header)
    if (draft) expect(Buffer.from(encodeHeader(draft)).toString()).toBe(text)
  })

  it('are refused with a code', () => {
    const bytes = (vector: Read) => (vector.text === undefined ? bytesOf(vector.bytes) : Buffer.from(vector.text))
    expect(verdicts(refused, (vector) => decodeHeader(bytes(vector)))).toEqual(expected(refused))
  })
})

describe('signing', () => {
  const { domains, accepted, spellings, refused } = read('signing')
  const seeds = new Map(read('keys').keys.map((one: Read) => [one.agent_id, unhex(one.seed)]))

  it('has a domain for each thing that is signed', () => {
    expect(domains.map(({ what }: Read) => what)).toEqual(SIGNED_THINGS)
    for (const { what, prefix } of domains) expect(toHex(inDomain(what, new Uint8Array(0)))).toBe(prefix)
  })

  it.each(accepted as Read[])('of an envelope: $name', (vector) => {
    const header = Buffer.from(vector.header)
    const payload = unhex(vector.payload)
    const meaning = decodeHeader(header)
    expect(toHex(encodePayload(meaning.content_type, vector.value))).toBe(vector.payload)
    expect(meaning).toMatchObject(bindPayload(payload))
    expect(toHex(signedBytesOf(header))).toBe(vector.m)
    expect(leafOf(header)).toBe(vector.leaf)
    const key = signingKey(seeds.get(vector.signer) as Uint8Array)
    expect(toHex(key.sign(unhex(vector.m)))).toBe(vector.signature)
    expect(toHex(encodeSingle({ header, payload, signature: unhex(vector.signature), hops: [] }))).toBe(vector.bytes)
    expect(decodePayload(meaning.content_type, payload)).toEqual(vector.value)
  })

  const verified = (vector: Read) => {
    const frame = frameOf(vector)
    if (frame.tag !== 0) throw new Error('not one envelope')
    const header = decodeHeader(frame.header)
    const leaf = verifyEnvelope(frame, keys.get(vector.signer) ?? expect.fail('no such key'))
    verifyPayload(header, frame)
    return leaf
  }

  it('F-04 holds for any spelling of the payload, as it is over the bytes as sent', () => {
    expect([...accepted, ...spellings].map(verified)).toEqual([...accepted, ...spellings].map(({ leaf }: Read) => leaf))
  })

  it('is refused for anything else', () => {
    expect(verdicts(refused, verified)).toEqual(expected(refused))
  })
})

describe('batches', () => {
  const { leaves: hexes, trees, batches, refused } = read('merkle')
  const all = hexes.map(unhex) as Uint8Array[]
  const pm = keys.get('pm') ?? expect.fail('no such key')
  const pmSeed = unhex(read('keys').keys.find((one: Read) => one.agent_id === 'pm').seed)

  it.each(trees as Read[])('of $count', ({ count, root, signed, signature, proofs }) => {
    const leaves = all.slice(0, count)
    expect(toHex(merkleRoot(leaves))).toBe(root)
    expect(toHex(signBatch(leaves, signingKey(pmSeed)))).toBe(signature)
    expect(pm.verify(unhex(signed), unhex(signature))).toBe(true)
    expect(verifyBatch(leaves, unhex(signature), pm)).toBe(true)
    for (const [index, leaf] of leaves.entries()) {
      expect(toHex(proofOf(leaves, index, unhex(signature)))).toBe(proofs[index])
      const proof = decodeProof(unhex(proofs[index]))
      expect(proof.siblings.map(toHex)).toEqual(auditPath(leaves, index).map(toHex))
      expect(verifyProof(leaf, proof, pm)).toBe(true)
    }
  })

  it.each(batches as Read[])('$name: the same envelopes together and alone', ({ bytes, leaves, alone }) => {
    const frame = frameOf({ bytes })
    if (frame.tag !== 2) throw new Error('not a batch')
    expect(frame.envelopes.map(({ header }) => leafOf(header))).toEqual(leaves)
    expect(verifyBatch(leaves.map(unhex), frame.signature, pm)).toBe(true)
    for (const [index, one] of alone.entries()) {
      const proven = frameOf({ bytes: one })
      if (proven.tag !== 1) throw new Error('not a proof')
      expect(verifyEnvelope(proven, pm)).toBe(leaves[index])
      verifyPayload(decodeHeader(proven.header), proven)
    }
  })

  it('are refused when the proof does not lead to the signed root', () => {
    const judge = (vector: Read) => {
      const proof = decodeProof(unhex(vector.proof))
      if (!verifyProof(unhex(vector.leaf), proof, pm)) throw new HermesError('BAD_PROOF')
    }
    expect(verdicts(refused, judge)).toEqual(expected(refused))
  })
})

describe('hops', () => {
  const { accepted, refused } = read('hops')

  const arrive = (vector: Read) => {
    const frame = frameOf(vector)
    if (frame.tag === 2) throw new Error('a batch')
    const header = decodeHeader(frame.header)
    const leaf = verifyEnvelope(frame, keys.get(header.sender.agent_id) ?? expect.fail('no such key'))
    verifyPayload(header, frame)
    return verifyHops({ header, leaf, hops: frame.hops, neighbour: vector.neighbour, self: vector.self, keyOf })
  }

  it.each(accepted as Read[])('hold together: $name', (vector) => {
    expect(arrive(vector)?.budget_ms).toBe(vector.budget_ms)
    const frame = frameOf(vector)
    if (frame.tag === 2) throw new Error('a batch')
    expect(shownHops(frame.hops)).toEqual(
      vector.hops.map((hop: Read) => ({ ...hop, json: toHex(Buffer.from(hop.json)) })),
    )
    expect(frame.hops.map(({ body }) => decodeHop(body).index)).toEqual(
      vector.hops.map((_: Read, index: number) => index),
    )
  })

  it('are refused when they do not', () => {
    expect(verdicts(refused, arrive)).toEqual(expected(refused))
  })
})
