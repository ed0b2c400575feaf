import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { createRequire } from 'node:module'

/** The two operations, over keys imported once. */
export interface Ed25519Backend {
  readonly name: 'sodium' | 'node'
  publicKeyOf(seed: Uint8Array): Uint8Array
  signer(seed: Uint8Array, publicKey: Uint8Array): (message: Uint8Array) => Uint8Array
  verifier(publicKey: Uint8Array): (message: Uint8Array, signature: Uint8Array) => boolean
}

const url = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

/** A JWK imports 15 times as fast as SPKI DER. */
const publicJwk = (raw: Uint8Array): KeyObject =>
  createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: url(raw) } })

const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

const privateKeyOf = (seed: Uint8Array): KeyObject =>
  createPrivateKey({ format: 'der', type: 'pkcs8', key: Buffer.concat([PKCS8, seed]) })

export const nodeBackend: Ed25519Backend = {
  name: 'node',
  publicKeyOf: (seed) => {
    const jwk = createPublicKey(privateKeyOf(seed)).export({ format: 'jwk' })
    return new Uint8Array(Buffer.from(jwk.x as string, 'base64url'))
  },
  signer: (seed) => {
    const key = privateKeyOf(seed)
    return (message) => sign(null, message, key)
  },
  verifier: (raw) => {
    const key = publicJwk(raw)
    return (message, signature) => verify(null, message, key, signature)
  },
}

interface Sodium {
  crypto_sign_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Buffer): void
  crypto_sign_detached(signature: Buffer, message: Uint8Array, secretKey: Buffer): void
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Buffer): boolean
}

function sodiumBackend(sodium: Sodium): Ed25519Backend {
  const pair = (seed: Uint8Array) => {
    const publicKey = Buffer.alloc(32)
    const secretKey = Buffer.alloc(64)
    sodium.crypto_sign_seed_keypair(publicKey, secretKey, Buffer.from(seed))
    return { publicKey, secretKey }
  }
  return {
    name: 'sodium',
    publicKeyOf: (seed) => new Uint8Array(pair(seed).publicKey),
    signer: (seed) => {
      const { secretKey } = pair(seed)
      return (message) => {
        const signature = Buffer.allocUnsafe(64)
        sodium.crypto_sign_detached(signature, message, secretKey)
        return signature
      }
    },
    verifier: (raw) => {
      const key = Buffer.from(raw)
      return (message, signature) => sodium.crypto_sign_verify_detached(signature, message, key)
    },
  }
}

/** libsodium where its optional package is installed (about 1.6 times as fast), else Node's own crypto. */
export const ed25519Backend: Ed25519Backend = (() => {
  try {
    return sodiumBackend(createRequire(import.meta.url)('sodium-native') as Sodium)
  } catch {
    return nodeBackend
  }
})()
