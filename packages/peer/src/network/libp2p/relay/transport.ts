import type { PeerId } from '@libp2p/interface'
import { RELAYED_STREAMS, type RelayComponents } from './components.ts'
import { createHandOver } from './hand-over.ts'

/** One slot at one relay, as libp2p's store tells it. */
interface Slot {
  relay: PeerId
}

/** What is used of libp2p's store of slots: its types leave it out, but it is a public member of the transport. */
export interface SlotStore {
  addRelay(relay: PeerId, type: 'configured'): Promise<Slot>
  getReservation(relay: PeerId): { expire: bigint; addrs: Uint8Array[] } | undefined
  hasReservation(relay: PeerId): boolean
  addEventListener(type: 'relay:removed', listener: (event: CustomEvent<Slot>) => void): void
}

/** The way through relays, in both directions. */
export interface RelayTransport {
  readonly slots: SlotStore
  /** Takes connections that come through relays; until then it only makes them. */
  accept(): Promise<void>
  stop(): Promise<void>
}

interface Startable {
  start(): Promise<void> | void
  stop(): Promise<void> | void
}

/** Adds relayed connections to a running node, and direct ones that replace them where two peers can reach each other. */
export async function addRelayTransport(components: RelayComponents): Promise<RelayTransport> {
  // Loaded here, not at import: most peers can be dialled, and dial peers that can be.
  const [{ circuitRelayTransport, RELAY_V2_HOP_CODEC }, { dcutr }] = await Promise.all([
    import('@libp2p/circuit-relay-v2'),
    import('@libp2p/dcutr'),
  ])
  const { registrar, transportManager } = components
  const transport = circuitRelayTransport({
    maxInboundStopStreams: RELAYED_STREAMS,
    maxOutboundStopStreams: RELAYED_STREAMS,
  })({
    peerId: components.peerId,
    upgrader: components.upgrader,
    addressManager: components.addressManager,
    connectionGater: components.connectionGater,
    peerStore: components.peerStore,
    connectionManager: components.connectionManager,
    randomWalk: components.randomWalk,
    events: components.events,
    logger: components.logger,
    // Any relay that sends somebody would become one that this peer listens on and tells others of, without an end.
    transportManager: Object.create(transportManager, {
      listen: { value: () => Promise.reject(new Error('only relays that the user names are listened on')) },
    }) as RelayComponents['transportManager'],
    // It would ask each relay it meets for a slot, and take the renewal of ours for one too many.
    registrar: Object.create(registrar, {
      register: {
        value: async (...how: Parameters<typeof registrar.register>) =>
          how[0] === RELAY_V2_HOP_CODEC ? 'none' : registrar.register(...how),
      },
    }) as RelayComponents['registrar'],
  }) as ReturnType<ReturnType<typeof circuitRelayTransport>> & Startable & { reservationStore: SlotStore }
  transportManager.add(transport)
  const handOver = createHandOver(registrar)
  const direct = dcutr()({
    peerStore: components.peerStore,
    connectionManager: components.connectionManager,
    addressManager: components.addressManager,
    logger: components.logger,
    transportManager,
    registrar: handOver.registrar,
  }) as Startable
  await direct.start()
  let accepting = false
  return {
    slots: transport.reservationStore,
    async accept() {
      if (accepting) return
      accepting = true
      await transport.start()
    },
    async stop() {
      handOver.stop()
      await direct.stop()
      if (accepting) await transport.stop()
    },
  }
}
