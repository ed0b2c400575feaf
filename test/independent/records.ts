import { ascii, join } from './bytes.ts'
import { sha256 } from './ed25519.ts'

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** CID v1 (0x01), raw (0x55), sha2-256 (0x12) of 32 bytes, written in multibase base32. */
export function providerCid(key: string): string {
  return `b${base32(join(Uint8Array.of(0x01, 0x55, 0x12, 0x20), sha256(ascii(key))))}`
}

export const providerKey = (network: string, capability: string): string => `hermes:${network}:capability:${capability}`

/** The libp2p peer id: an identity multihash of the protobuf {type: Ed25519 (1), data: key}, in base58btc. */
export function peerId(raw: Uint8Array): string {
  const protobuf = join(Uint8Array.of(0x08, 0x01, 0x12, raw.length), raw)
  return base58(join(Uint8Array.of(0x00, protobuf.length), protobuf))
}

function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('')
  const groups = bits.match(/.{1,5}/g) ?? []
  return groups.map((group) => BASE32[Number.parseInt(group.padEnd(5, '0'), 2)]).join('')
}

function base58(bytes: Uint8Array): string {
  const zeros = bytes.findIndex((byte) => byte !== 0)
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
  let digits = ''
  while (rest > 0n) {
    digits = BASE58[Number(rest % 58n)] + digits
    rest /= 58n
  }
  return '1'.repeat(zeros) + digits
}
