import { existsSync } from 'node:fs'
import { HermesError } from '@hermes-peer/protocol'
import { type Random, systemRandom } from '../random.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

const FIELD = 'preSharedKey'
/** The form that other libp2p implementations call a swarm key. */
const HEAD = '/key/swarm/psk/1.0.0/\n/base16/\n'
const FORM = /^\/key\/swarm\/psk\/1\.0\.0\/\r?\n\/base16\/\r?\n([0-9a-f]{64})\s*$/i

/**
 * Reads the key that all peers of a private network share, 32 bytes. Throws `INVALID_KEY_FILE` for no file or other content,
 * `KEY_FILE_EXPOSED` when group or others can read it, `STORAGE_FAILED`.
 */
export function loadPreSharedKey(path: string): Uint8Array {
  const [, digits] = FORM.exec(readPrivateFile(path, FIELD).replace(/^\uFEFF/, '')) ?? []
  if (digits !== undefined) return new Uint8Array(Buffer.from(digits, 'hex'))
  throw new HermesError('INVALID_KEY_FILE', {
    message: `${FIELD}: ${path} is not a pre-shared key: three lines, /key/swarm/psk/1.0.0/, /base16/ and 64 hex digits`,
    hint: 'Make one with generatePreSharedKey(path) and give each peer of the network a copy.',
    details: { field: FIELD },
  })
}

/**
 * Makes the key of a new private network: a file of mode 0600, to be copied to each of its peers. Throws `STORAGE_FAILED`
 * when it cannot be written, or when there is a file already: the network that uses it would fall apart.
 */
export function generatePreSharedKey(path: string, random: Random = systemRandom()): void {
  const text = `${HEAD}${Buffer.from(random.bytes(32)).toString('hex')}\n`
  if (!existsSync(path)) writePrivateFile(path, text, { exclusive: true })
  // Also when another process was first.
  if (readPrivateFile(path, FIELD) === text) return
  throw new HermesError('STORAGE_FAILED', {
    message: `${FIELD}: there is a file at ${path} already, which is kept`,
    hint: 'Remove it first, if no peer uses it any more.',
    details: { field: FIELD, path },
  })
}
