import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { domain, hex, join, partOf, uvarint } from '../bytes.ts'
import { sha256, type VerifyingKey, verifyingKey } from '../ed25519.ts'
import { treeRoot } from '../merkle.ts'
import { type Read, read } from '../support.ts'

export interface Signer {
  readonly agent: string
  readonly key: VerifyingKey
  sign(message: Uint8Array): Uint8Array
}

function signerOf({ agent_id, seed, public_key }: Read): Signer {
  const base64url = (text: string) => Buffer.from(text, 'hex').toString('base64url')
  const jwk = { kty: 'OKP', crv: 'Ed25519', d: base64url(seed), x: base64url(public_key) }
  const secret: KeyObject = createPrivateKey({ format: 'jwk', key: jwk })
  return {
    agent: agent_id,
    key: verifyingKey(Buffer.from(public_key, 'hex')),
    sign: (message) => sign(null, message, secret),
  }
}

/** The agents of the vectors, with their keys. */
export function signers(): ReadonlyMap<string, Signer> {
  return new Map(read('keys').keys.map((one: Read) => [one.agent_id, signerOf(one)]))
}

export const signBatch = (signer: Signer, leaves: Uint8Array[]): Uint8Array =>
  signer.sign(join(domain('batch'), uvarint(leaves.length), treeRoot(leaves)))

/** The siblings of a leaf, nearest first, by walking the tree level by level from the top. */
function siblings(leaves: Uint8Array[], index: number): Uint8Array[] {
  if (leaves.length === 1) return []
  let left = 1
  while (left * 2 < leaves.length) left *= 2
  const [near, far] = [leaves.slice(0, left), leaves.slice(left)]
  return index < left ? [...siblings(near, index), treeRoot(far)] : [...siblings(far, index - left), treeRoot(near)]
}

export function proof(signature: Uint8Array, leaves: Uint8Array[], index: number): Uint8Array {
  return join(signature, uvarint(index), uvarint(leaves.length), ...siblings(leaves, index))
}

export interface SignedHop {
  json: Uint8Array
  signature: Uint8Array
}

export const signHop = (signer: Signer, json: Uint8Array): SignedHop => ({
  json,
  signature: signer.sign(join(domain('hop'), partOf(json))),
})

export const linkOf = ({ json }: SignedHop): string => hex(sha256(partOf(json)))
