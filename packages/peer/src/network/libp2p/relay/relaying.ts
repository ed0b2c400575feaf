import type { Connection, PeerId } from '@libp2p/interface'
import type { Multiaddr } from '@multiformats/multiaddr'
import type { RelayComponents } from './components.ts'
import { type RelayLimits, type RelayServer, serveRelay } from './server.ts'
import { keepSlots, type SlotEvents, type Slots } from './slots.ts'
import { addRelayTransport, type RelayTransport } from './transport.ts'

/** Everything of one node that goes through relays: its own slots, its dials, and its service for others. */
export interface Relaying {
  /** Makes addresses that lead through a relay dialable, at the first of them. */
  ready(): Promise<void>
  /** Addresses at which this peer can be called through relays. */
  addresses(): Multiaddr[]
  /** Whether a relay may send somebody to this peer. */
  takesFrom(relay: PeerId): boolean
  /** Whether a peer may not have a slot here. */
  refuses(peerId: PeerId): boolean
  /** On a node that has started: serves as a relay, and asks once for each slot; a relay that is not there fails nothing. */
  start(events: SlotEvents, life: AbortSignal): Promise<void>
  stop(): Promise<void>
}

export interface RelayingOptions {
  /** Relays that this peer wants to be called through, each with the peer id at its end. */
  via: readonly Multiaddr[]
  /** What it gives to others, if it is a relay. */
  server: RelayLimits | undefined
  components(): RelayComponents
  connections(peerId: string): readonly Connection[]
  dial(address: Multiaddr, signal: AbortSignal): Promise<Connection>
  /** Whether trust knows a peer. */
  admits(peerId: string): boolean
}

export function createRelaying(options: RelayingOptions): Relaying {
  const { via, components, connections, dial, admits } = options
  let transport: Promise<RelayTransport> | undefined
  let slots: Slots | undefined
  let server: RelayServer | undefined
  let stopped = false
  const added = (): Promise<RelayTransport> => {
    transport ??= addRelayTransport(components())
    return transport
  }
  return {
    async ready() {
      if (!stopped) await added()
    },
    addresses: () => slots?.addresses() ?? [],
    takesFrom: (relay) => slots?.holds(relay.toString()) ?? false,
    refuses: (peerId) => server?.refuses(peerId) ?? true,
    async start(events, life) {
      if (options.server !== undefined) server = await serveRelay(components(), options.server, admits)
      if (via.length === 0) return
      const { slots: store, accept } = await added()
      await accept()
      // What others are told of this peer has to follow.
      const changed = () => components().events.safeDispatchEvent('transport:listening')
      slots = keepSlots({
        relays: via,
        store,
        connections,
        dial,
        life,
        events: {
          reserved: (...what) => {
            changed()
            events.reserved(...what)
          },
          lost: (...what) => {
            changed()
            events.lost(...what)
          },
        },
      })
      await slots.tried
    },
    async stop() {
      stopped = true
      slots?.stop()
      await server?.stop()
      await (await transport?.catch(() => undefined))?.stop()
    },
  }
}
