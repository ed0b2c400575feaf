import { createPrivateKey, createPublicKey } from 'node:crypto'
import { privateKeyFromRaw } from '@libp2p/crypto/keys'
import type { PrivateKey } from '@libp2p/interface'

/** PKCS #8 around a raw Ed25519 seed (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/** libp2p's key of a raw seed, without its asynchronous detour, so that a peer id is known before `start`. */
export function keyFromSeed(seed: Uint8Array): PrivateKey {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' })
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  return privateKeyFromRaw(Buffer.concat([seed, Buffer.from(x as string, 'base64url')]))
}
