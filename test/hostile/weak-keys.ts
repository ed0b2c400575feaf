import { createHash, randomBytes } from 'node:crypto'
import { fingerprintOf, peerIdOf, type SigningKey } from '@hermes-peer/protocol'
import { generateKeyPairFromSeed, publicKeyFromRaw } from '@libp2p/crypto/keys'
import type { Ed25519PrivateKey } from '@libp2p/interface'
import { ed25519 } from '@noble/curves/ed25519.js'
import type { Actor } from './actors.ts'
import { seedOf } from './actors.ts'

/** A public key that nobody may be admitted with, and how a signature for it is forged all the same. */
export interface WeakKey {
  readonly name: string
  readonly raw: Uint8Array
  /** Holds for any message in a verifier that does not look at the key, such as Node's. */
  sign(message: Uint8Array): Uint8Array
}

const { Point } = ed25519
const ORDER = Point.Fn.ORDER

const numberOf = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
const bytesOf = (value: bigint) => new Uint8Array(Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse())

/**
 * R and S such that S·B = R + k·A, where A = a·B + T and T has an order that divides 8: random ones are drawn until k is a multiple
 * of 8, so that T falls out. For a point of small order a is 0, which anybody knows.
 */
function forge(raw: Uint8Array, a: bigint, message: Uint8Array): Uint8Array {
  for (;;) {
    const r = numberOf(randomBytes(64)) % ORDER
    const R = Point.BASE.multiply(r === 0n ? 1n : r).toBytes()
    const k = numberOf(createHash('sha512').update(R).update(raw).update(message).digest()) % ORDER
    if (k % 8n !== 0n) continue
    const S = ((r === 0n ? 1n : r) + k * a) % ORDER
    return Buffer.concat([R, bytesOf(S)])
  }
}

const weak = (name: string, raw: Uint8Array, a = 0n): WeakKey => ({
  name,
  raw,
  sign: (message) => forge(raw, a, message),
})

/** A generator of the eight points of small order: what is left of a random point once the prime order is multiplied away. */
const TORSION = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05')

/** The eight points of small order, in their canonical encodings. */
export const SMALL_ORDER: readonly WeakKey[] = Array.from({ length: 8 }, (_, index) => {
  const point = index === 0 ? Point.ZERO : TORSION.multiply(BigInt(index))
  return weak(`small order ${index}: ${Buffer.from(point.toBytes()).toString('hex').slice(0, 8)}…`, point.toBytes())
})

const P = 2n ** 255n - 19n
const signed = (y: bigint) => {
  const bytes = bytesOf(y)
  bytes[31] = (bytes[31] as number) | 0x80
  return bytes
}

/** Other spellings of points of small order: y not reduced, or a sign where x is 0. */
export const NOT_CANONICAL: readonly WeakKey[] = [
  weak('y = p', bytesOf(P)),
  weak('y = p with a sign', signed(P)),
  weak('y = p + 1', bytesOf(P + 1n)),
  weak('y = p + 1 with a sign', signed(P + 1n)),
  weak('y = 1 with a sign', signed(1n)),
  weak('y = -1 with a sign', signed(P - 1n)),
]

/** An honest key to which a point of small order was added: its owner can sign, and it is no key of the prime-order group. */
export const MIXED: readonly WeakKey[] = [1n, 2n, 4n].map((index) => {
  const a = numberOf(randomBytes(64)) % ORDER
  return weak(`mixed order ${8n / index}`, Point.BASE.multiply(a).add(TORSION.multiply(index)).toBytes(), a)
})

export const WEAK_KEYS: readonly WeakKey[] = [...SMALL_ORDER, ...NOT_CANONICAL, ...MIXED]

/** An actor with such a key; it signs by forging. */
export function weakActor(agentId: string, { raw, sign }: WeakKey): Actor {
  const fingerprint = fingerprintOf(raw)
  const key: SigningKey = { publicKey: { raw, fingerprint, verify: () => false }, seed: seedOf(agentId), sign }
  // A list may name a key by its fingerprint only, so that nobody has looked at the key.
  return { agentId, key, peerId: peerIdOf(raw), listed: { agent_id: agentId, fingerprint } }
}

/** The same as a transport identity: libp2p takes it. */
export async function weakTransportKey({ raw, sign }: WeakKey): Promise<Ed25519PrivateKey> {
  const own = await generateKeyPairFromSeed('Ed25519', seedOf('weak'))
  const publicKey = publicKeyFromRaw(raw) as Ed25519PrivateKey['publicKey']
  return {
    type: own.type,
    raw: own.raw,
    publicKey,
    equals: () => false,
    sign: (data) => sign(data instanceof Uint8Array ? data : data.subarray()),
  }
}
