import { createCipheriv, createHash, randomBytes } from 'node:crypto'
import { type ICryptoInterface, pureJsCrypto } from '@chainsafe/libp2p-noise'

/** The functions of sodium-native that are used here. */
interface Sodium {
  crypto_aead_chacha20poly1305_ietf_encrypt(
    out: Uint8Array,
    plain: Uint8Array,
    additional: Uint8Array,
    unused: null,
    nonce: Uint8Array,
    key: Uint8Array,
  ): number
  crypto_aead_chacha20poly1305_ietf_decrypt(
    out: Uint8Array,
    unused: null,
    sealed: Uint8Array,
    additional: Uint8Array,
    nonce: Uint8Array,
    key: Uint8Array,
  ): number
  crypto_scalarmult_base(publicKey: Uint8Array, privateKey: Uint8Array): void
  crypto_scalarmult(shared: Uint8Array, privateKey: Uint8Array, publicKey: Uint8Array): void
}

const TAG_BYTES = 16
const KEY_BYTES = 32

/**
 * The cryptography of Noise by libsodium: for messages of a few hundred bytes it seals about three times as fast as
 * the WebAssembly that Noise uses for them. Undefined where the optional package is not installed or does not agree
 * with Node's own cipher; Noise then keeps its default.
 */
export async function loadNativeCrypto(
  load: () => Promise<unknown> = () => import('sodium-native' as string),
): Promise<ICryptoInterface | undefined> {
  try {
    const loaded = (await load()) as { default?: Sodium } & Sodium
    const crypto = cryptoOf(loaded.default ?? loaded)
    return agreesWithNode(crypto) ? crypto : undefined
  } catch {
    return undefined
  }
}

function cryptoOf(sodium: Sodium): ICryptoInterface {
  const pairOf = (privateKey: Uint8Array) => {
    const publicKey = new Uint8Array(KEY_BYTES)
    sodium.crypto_scalarmult_base(publicKey, privateKey)
    return { publicKey, privateKey }
  }
  return {
    ...pureJsCrypto,
    hashSHA256: (data) => createHash('sha256').update(data.subarray()).digest(),
    generateX25519KeyPair: () => pairOf(randomBytes(KEY_BYTES)),
    generateX25519KeyPairFromSeed: pairOf,
    // It throws for the points that would make the shared key known to everyone.
    generateX25519SharedKey: (privateKey, publicKey) => {
      const shared = new Uint8Array(KEY_BYTES)
      sodium.crypto_scalarmult(shared, privateKey.subarray(), publicKey.subarray())
      return shared
    },
    chaCha20Poly1305Encrypt: (plaintext, nonce, additional, key) => {
      const plain = plaintext.subarray()
      const sealed = Buffer.allocUnsafe(plain.length + TAG_BYTES)
      sodium.crypto_aead_chacha20poly1305_ietf_encrypt(sealed, plain, additional, null, nonce, key)
      return sealed
    },
    chaCha20Poly1305Decrypt: (ciphertext, nonce, additional, key, target) => {
      const sealed = ciphertext.subarray()
      const plain = target ?? Buffer.allocUnsafe(sealed.length - TAG_BYTES)
      sodium.crypto_aead_chacha20poly1305_ietf_decrypt(plain, null, sealed, additional, nonce, key)
      return plain
    },
  }
}

/** Whether both seal a message to the same bytes, and what is sealed opens again. */
function agreesWithNode(crypto: ICryptoInterface): boolean {
  const [key, nonce, additional, plain] = [32, 12, 5, 100].map((length) => randomBytes(length)) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ]
  const cipher = createCipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(additional, { plaintextLength: plain.length })
  const expected = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  const sealed = crypto.chaCha20Poly1305Encrypt(plain, nonce, additional, key).subarray()
  const opened = crypto.chaCha20Poly1305Decrypt(sealed, nonce, additional, key).subarray()
  return expected.equals(sealed) && plain.equals(opened)
}
