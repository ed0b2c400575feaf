import { createHash } from 'node:crypto'
import type { PeerDiscovery, PeerInfo } from '@libp2p/interface'
import { type MulticastDNSComponents, mdns } from '@libp2p/mdns'

export type OnFound = (peer: PeerInfo) => void

/** Multicast DNS among the peers of one network; libp2p itself only notes what it finds, so `onFound` has to connect. */
export function mdnsDiscovery(
  network: string,
  onFound: OnFound,
): (components: MulticastDNSComponents) => PeerDiscovery {
  return (components) => {
    const discovery = mdns({ serviceTag: serviceTag(network) })(components)
    discovery.addEventListener('peer', ({ detail }) => onFound(detail))
    return discovery
  }
}

/** A service name has at most 15 characters (RFC 6763), a network name up to 64. */
function serviceTag(network: string): string {
  return `_hp-${createHash('sha256').update(network).digest('hex').slice(0, 8)}._udp.local`
}
