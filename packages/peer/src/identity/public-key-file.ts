import { createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fromBase64url, HermesError, type PublicKey, publicKey } from '@hermes-peer/protocol'

const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const RAW = /^[A-Za-z0-9_-]{43}$/

/** The PEM text (SPKI) of a public key: what `openssl pkey -pubout` writes. */
export function publicPem({ raw }: PublicKey): string {
  const key = createPublicKey({ format: 'der', type: 'spki', key: Buffer.concat([SPKI, raw]) })
  return key.export({ format: 'pem', type: 'spki' }) as string
}

/**
 * A public key given as such (raw, in base64url), or as the path of a file that holds it in PEM or in base64url; of a private key
 * only its public half is taken. Throws `INVALID_KEY_FILE` that names the field.
 */
export function readPublicKey(keyOrPath: string, field: string): PublicKey {
  const refuse = (why: string, cause?: unknown): never => {
    throw new HermesError('INVALID_KEY_FILE', {
      message: `${field}: ${keyOrPath} ${why}`,
      hint: 'Give an Ed25519 public key: raw in base64url, or the path of a PEM file.',
      details: { field },
      ...(cause === undefined ? {} : { cause }),
    })
  }
  try {
    if (RAW.test(keyOrPath)) return publicKey(fromBase64url(keyOrPath) as Uint8Array)
    return publicKey(rawOf(readFileSync(keyOrPath, 'utf8').trim()))
  } catch (cause) {
    return refuse(`is no Ed25519 public key: ${(cause as Error).message}`, cause)
  }
}

function rawOf(text: string): Uint8Array {
  if (RAW.test(text)) return fromBase64url(text) as Uint8Array
  const key = createPublicKey(text)
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`it holds a key of type ${key.asymmetricKeyType}`)
  return new Uint8Array(Buffer.from(key.export({ format: 'jwk' }).x as string, 'base64url'))
}
