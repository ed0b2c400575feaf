import { HermesError } from '@hermes-peer/protocol'
import { peerIdFromString } from '@libp2p/peer-id'
import { CODE_IP4, CODE_IP6, CODE_P2P, CODE_P2P_CIRCUIT, type Multiaddr, multiaddr } from '@multiformats/multiaddr'

/** Parses a multiaddr; throws `INVALID_ADDRESS` that names field and text. */
export function parseAddress(text: string, field: string): Multiaddr {
  const address = tryParse(text)
  if (address !== undefined) return address
  throw new HermesError('INVALID_ADDRESS', {
    message: `${field}: ${JSON.stringify(text)} is not a multiaddr`,
    details: { field, address: text },
  })
}

/** Parses the multiaddr of a relay; throws `INVALID_ADDRESS` when it does not end in the peer id of that relay. */
export function parseRelay(text: string, field: string): Multiaddr {
  const address = parseAddress(text, field)
  if (peerIdIn(address) !== undefined && !address.getComponents().some(({ code }) => code === CODE_P2P_CIRCUIT)) {
    return address
  }
  throw new HermesError('INVALID_ADDRESS', {
    message: `${field}: ${JSON.stringify(text)} does not end in /p2p/<peer id of the relay>`,
    hint: 'Take it from the addresses that the relay says when it starts.',
    details: { field, address: text },
  })
}

/** Parses a multiaddr, undefined when it is none. */
export function tryParse(text: string): Multiaddr | undefined {
  try {
    const address = multiaddr(text)
    // A name that is no peer id would be noticed only when it is dialled.
    for (const { code, value } of address.getComponents()) if (code === CODE_P2P) peerIdFromString(value ?? '')
    return address.getComponents().length === 0 ? undefined : address
  } catch {
    return undefined
  }
}

/** The peer id that an address ends in, if any. */
export function peerIdIn(address: Multiaddr): string | undefined {
  const last = address.getComponents().at(-1)
  return last?.code === CODE_P2P ? last.value : undefined
}

/** The address with `/p2p/<peerId>` at its end. */
export function withPeerId(address: Multiaddr, peerId: string): Multiaddr {
  return peerIdIn(address) === undefined ? address.encapsulate(`/p2p/${peerId}`) : address
}

/** Throws `INVALID_ADDRESS` when a text is no peer id. */
export function checkPeerId(text: string): string {
  try {
    return peerIdFromString(text).toString()
  } catch {
    throw new HermesError('INVALID_ADDRESS', {
      message: `peerId: ${JSON.stringify(text)} is not a peer id`,
      details: { field: 'peerId', address: text },
    })
  }
}

const isLoopback = (address: Multiaddr): boolean => {
  const [host] = address.getComponents()
  if (host?.code === CODE_IP4) return host.value?.startsWith('127.') === true
  return host?.code === CODE_IP6 && host.value === '::1'
}

/**
 * The addresses that a caller can use, of those that each listener is bound to. A listener on all interfaces is also
 * bound to loopback, which leads callers on other machines to themselves: such a listener is told without it, unless
 * the machine has nothing else. A listener on loopback alone keeps its address.
 */
export function usableAddresses(listeners: readonly (readonly Multiaddr[])[]): Multiaddr[] {
  return listeners.flatMap((bound) => {
    const outside = bound.filter((address) => !isLoopback(address))
    return outside.length > 0 ? outside : bound
  })
}
