import type { Connection, ConnectionGater, Libp2p, MultiaddrConnection, PeerId } from '@libp2p/interface'
import { CODE_IP4, CODE_IP6, type Multiaddr } from '@multiformats/multiaddr'
import { relayIn } from './relay/relayed.ts'
import type { Relaying } from './relay/relaying.ts'

/** What a key says of who has it, before any handshake; as `Standing` of `identity/trust.ts`. */
export type Standing = 'admitted' | 'unknown' | 'stranger'

/** Who may connect at all. */
export interface GateOptions {
  /** What trust says of a raw Ed25519 key. */
  standing(key: Uint8Array): Standing
  /** Peers that the user has named by their id, as relays or to join through: connected to, whoever they are. */
  named: ReadonlySet<string>
  /** Whether there is a link to that peer. */
  linked(peerId: string): boolean
  /** Incoming connections of peers that trust can say nothing about yet, kept at a time. */
  unknown: number
  /** How long such a connection may take to come to a link, ms. */
  unknownMs: number
  /** Connections without a link from addresses of one site. */
  perGroup: number
  /** The protocol of the DHT of this network: whoever speaks it takes part. */
  participates: string
}

/** Decides which connections come up, and closes those that lead to nothing. */
export interface Gate {
  /** How much a connection is worth keeping, the least first: 0 stranger, 1 unknown, 2 admitted or linked. */
  worth(peerId: PeerId): 0 | 1 | 2
  admits(peerId: PeerId): boolean
  readonly gater: ConnectionGater
  /** Looks after the connections of a node until `life` ends. */
  watch(libp2p: Libp2p, life: AbortSignal): void
}

/** How often connections without a link are looked at, ms. */
const SWEEP_MS = 1000

/** `options` absent: everybody may connect, and nobody is known. `relaying` is there once the node is made. */
export function createGate(options: GateOptions | undefined, relaying: () => Relaying | undefined): Gate {
  let connections: () => Connection[] = () => []
  const standing = (peerId: PeerId): Standing => {
    if (options === undefined) return 'unknown'
    const id = peerId.toString()
    if (options.named.has(id) || options.linked(id)) return 'admitted'
    // Agents have Ed25519 keys, and the peer id of such a key holds all of it.
    return peerId.type === 'Ed25519' ? options.standing(peerId.publicKey.raw) : 'stranger'
  }
  const refuses = (peerId: PeerId) => options !== undefined && standing(peerId) === 'stranger'
  const unlinked = () =>
    connections().filter((one) => one.direction === 'inbound' && standing(one.remotePeer) !== 'admitted')
  const gater: ConnectionGater = {
    denyInboundRelayReservation: (peerId) => relaying()?.refuses(peerId) ?? true,
    denyInboundRelayedConnection: (relay, peerId) => !(relaying()?.takesFrom(relay) ?? false) || refuses(peerId),
    ...(options === undefined
      ? {}
      : {
          denyDialPeer: refuses,
          denyOutboundConnection: refuses,
          denyOutboundEncryptedConnection: refuses,
          denyInboundConnection: ({ remoteAddr }: MultiaddrConnection) => {
            const group = groupOf(remoteAddr)
            return unlinked().filter((one) => groupOf(one.remoteAddr) === group).length >= options.perGroup
          },
          denyInboundEncryptedConnection: (peerId: PeerId) => {
            const known = standing(peerId)
            return known === 'stranger' || (known === 'unknown' && unlinked().length >= options.unknown)
          },
        }),
  }
  return {
    gater,
    admits: (peerId) => standing(peerId) === 'admitted',
    worth: (peerId) => WORTH[standing(peerId)],
    watch(libp2p, life) {
      connections = () => libp2p.getConnections()
      if (options === undefined) return
      const sweep = async (): Promise<void> => {
        const late = Date.now() - options.unknownMs
        for (const connection of unlinked()) {
          if (connection.timeline.open > late) continue
          if (standing(connection.remotePeer) === 'unknown' && (await participates(libp2p, connection))) continue
          connection.abort(new Error(`there was no link within ${options.unknownMs} ms`))
        }
      }
      const participates = async ({ peerStore }: Libp2p, { remotePeer }: Connection): Promise<boolean> => {
        const peer = await peerStore.get(remotePeer).catch(() => undefined)
        return peer?.protocols.includes(options.participates) ?? false
      }
      const timer = setInterval(() => void sweep().catch(() => undefined), SWEEP_MS)
      timer.unref()
      life.addEventListener('abort', () => clearInterval(timer), { once: true })
    },
  }
}

const WORTH = { stranger: 0, unknown: 1, admitted: 2 } as const

/** What the addresses of one site share: 24 bits of IPv4, 48 of IPv6, or the relay that all of them come through. */
export function groupOf(address: Multiaddr): string {
  const relay = relayIn(address)
  if (relay !== undefined) return relay
  const [host] = address.getComponents()
  const text = host?.value ?? ''
  if (host?.code === CODE_IP4) return text.split('.').slice(0, 3).join('.')
  if (host?.code === CODE_IP6) return expanded(text).slice(0, 3).join(':')
  return text
}

/** The eight groups of an IPv6 address; one that maps IPv4 keeps its last as they are. */
function expanded(text: string): string[] {
  const [before = '', after] = text.toLowerCase().split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length)
  return [...head, ...new Array<string>(zeros).fill('0'), ...tail].map((part) => part.replace(/^0+(?=.)/, ''))
}
