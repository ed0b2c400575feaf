import type { Connection } from '@libp2p/interface'
import { CODE_P2P, CODE_P2P_CIRCUIT, type Multiaddr } from '@multiformats/multiaddr'

/** Whether an address leads through a relay. */
export function isRelayed(address: Multiaddr): boolean {
  return address.getComponents().some(({ code }) => code === CODE_P2P_CIRCUIT)
}

/** The relay that an address names, the peer id before `p2p-circuit`; undefined when it leads through none. */
export function relayIn(address: Multiaddr): string | undefined {
  const parts = address.getComponents()
  const at = parts.findIndex(({ code }) => code === CODE_P2P_CIRCUIT)
  const before = at > 0 ? parts[at - 1] : undefined
  return before?.code === CODE_P2P ? before.value : undefined
}

/** Direct connections first, each kind in its order: a relay is slower, has limits, and serves others too. */
export function directFirst(connections: readonly Connection[]): Connection[] {
  return connections.toSorted((a, b) => Number(isRelayed(a.remoteAddr)) - Number(isRelayed(b.remoteAddr)))
}
