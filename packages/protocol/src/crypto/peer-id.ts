import { base58btc } from 'multiformats/bases/base58'

/** libp2p's protobuf of an Ed25519 public key inside an identity multihash: 0x00 (identity), 36 bytes, type 1, 32 bytes of key. */
const PREFIX = Uint8Array.of(0x00, 0x24, 0x08, 0x01, 0x12, 0x20)

/** The transport's peer id (base58btc) of a raw Ed25519 key: the id holds the key itself. */
export function peerIdOf(rawKey: Uint8Array): string {
  const bytes = new Uint8Array(PREFIX.length + rawKey.length)
  bytes.set(PREFIX)
  bytes.set(rawKey, PREFIX.length)
  return base58btc.baseEncode(bytes)
}
