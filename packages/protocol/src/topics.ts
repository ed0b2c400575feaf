import { utf8 } from './bytes/parts.ts'
import { sha256 } from './crypto/sha256.ts'

/** libp2p protocol of handshake and envelopes. */
export const LINK_PROTOCOL = '/hermes/link/1.0.0'

/** libp2p protocol of one streaming call, or of one payload that is too large for an envelope. */
export const STREAM_PROTOCOL = '/hermes/stream/1.0.0'

export const presenceTopic = (network: string): string => `hermes/${network}/presence/1`
export const trustTopic = (network: string): string => `hermes/${network}/trust/1`
export const broadcastTopic = (network: string, topic: string): string => `hermes/${network}/topic/${topic}`

/** The string whose hash names the providers of a capability in the DHT. */
export function providerKey(network: string, capability: string): string {
  return `hermes:${network}:capability:${capability}`
}

/** Binary CID v1, raw codec (0x55), sha2-256 (0x12, 32 bytes) of the provider key. */
export function providerCid(network: string, capability: string): Uint8Array {
  const digest = sha256(utf8(providerKey(network, capability)))
  const cid = new Uint8Array(4 + digest.length)
  cid.set([0x01, 0x55, 0x12, 0x20])
  cid.set(digest, 4)
  return cid
}
