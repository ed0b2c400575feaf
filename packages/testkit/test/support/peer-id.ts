import { createPrivateKey, createPublicKey } from 'node:crypto'
import { seededRandom } from '../../src/random/seeded-random.ts'

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
/** PKCS #8 of an Ed25519 key, up to its 32 bytes. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')
/** Identity multihash of a 36-byte protobuf: key type 1 (Ed25519), 32 bytes. */
const MULTIHASH = Buffer.from('002408011220', 'hex')

/** The peer id of a key made from a name. */
export function peerIdOf(name: string): string {
  const key = createPrivateKey({
    key: Buffer.concat([PKCS8, seededRandom(`key of ${name}`).bytes(32)]),
    format: 'der',
    type: 'pkcs8',
  })
  const raw = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
  return base58(Buffer.concat([MULTIHASH, raw]))
}

function base58(bytes: Buffer): string {
  let number = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  for (; number > 0n; number /= 58n) text = ALPHABET.charAt(Number(number % 58n)) + text
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return ALPHABET.charAt(0).repeat(zeros) + text
}
