import type { circuitRelayServer, circuitRelayTransport } from '@libp2p/circuit-relay-v2'
import type { DCUtRServiceComponents } from '@libp2p/dcutr'

/** What libp2p gives to its relay modules; a service is handed all of it. */
export type RelayComponents = Parameters<ReturnType<typeof circuitRelayTransport>>[0] &
  Parameters<ReturnType<typeof circuitRelayServer>>[0] &
  DCUtRServiceComponents

/** Streams of one connection that may carry relayed connections: each of these has one to itself. */
export const RELAYED_STREAMS = 64
