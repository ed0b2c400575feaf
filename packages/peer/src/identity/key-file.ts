import { createPrivateKey } from 'node:crypto'
import { existsSync } from 'node:fs'
import { HermesError, type SigningKey, signingKey } from '@hermes-peer/protocol'
import type { Random } from '../random.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * Reads an Ed25519 key in PEM (PKCS #8); makes one with mode 0600 when the file does not exist.
 * Throws `KEY_FILE_EXPOSED` when group or others can read it, `INVALID_KEY_FILE` for other content, `STORAGE_FAILED`.
 */
export function loadOrCreateKey(path: string, random: Random): SigningKey {
  if (!existsSync(path)) {
    const seed = random.bytes(32)
    writePrivateFile(path, toPem(seed), { exclusive: true })
    return loadKey(path)
  }
  return loadKey(path)
}

/** Like {@link loadOrCreateKey}, but a missing file is an error. */
export function loadKey(path: string): SigningKey {
  return parseKey(readPrivateFile(path, 'identity'), path)
}

/** The key of a PEM text that was read from `path`. Throws `INVALID_KEY_FILE`. */
export function parseKey(pem: string, path: string): SigningKey {
  return signingKey(seedOf(pem, path))
}

/** The PEM text of a seed. */
export function toPem(seed: Uint8Array): string {
  const key = createPrivateKey({ format: 'der', type: 'pkcs8', key: Buffer.concat([PKCS8, seed]) })
  return key.export({ format: 'pem', type: 'pkcs8' }) as string
}

function seedOf(pem: string, path: string): Uint8Array {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyType !== 'ed25519') throw new Error(`it holds a key of type ${key.asymmetricKeyType}`)
    return new Uint8Array(Buffer.from(key.export({ format: 'jwk' }).d as string, 'base64url'))
  } catch (cause) {
    throw new HermesError('INVALID_KEY_FILE', {
      message: `identity: ${path} is not an Ed25519 private key in PEM`,
      details: { field: 'identity' },
      cause,
    })
  }
}
