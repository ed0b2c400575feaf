import {
  broadcastTopic,
  LINK_PROTOCOL,
  presenceTopic,
  providerCid,
  providerKey,
  STREAM_PROTOCOL,
  toHex,
  trustTopic,
} from '../../src/index.ts'
import type { Vector } from './scene.ts'

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/** Multibase base32 (lower case, no padding), the usual text form of a CID v1. */
function textOf(cid: Uint8Array): string {
  let bits = 0
  let held = 0
  let text = 'b'
  for (const byte of cid) {
    held = (held << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32[(held >> (bits - 5)) & 31]
    held &= 31
  }
  return bits > 0 ? text + BASE32[(held << (5 - bits)) & 31] : text
}

function provider(network: string, capability: string): Vector {
  const cid = providerCid(network, capability)
  return { network, capability, key: providerKey(network, capability), cid: toHex(cid), text: textOf(cid) }
}

export function recordVectors(): Vector {
  const topics = (network: string, topic: string) => ({
    network,
    topic,
    presence: presenceTopic(network),
    trust: trustTopic(network),
    broadcast: broadcastTopic(network, topic),
  })
  return {
    about:
      'What is found by name: the provider record of a capability (`cid` in hex, `text` in base32), gossip topics, the protocol of links. Peer ids are in keys.json.',
    link_protocol: LINK_PROTOCOL,
    stream_protocol: STREAM_PROTOCOL,
    providers: [
      provider('dev-team', 'fix-test'),
      provider('dev-team', 'fix-test@2'),
      provider('dev-team', 'fix-test@10'),
      provider('other', 'fix-test'),
      provider('n'.repeat(64), 'c'.repeat(64)),
      provider('0', 'a.b_c-d'),
    ],
    topics: [topics('dev-team', 'builds'), topics('0', 'a.b_c-d')],
  }
}
