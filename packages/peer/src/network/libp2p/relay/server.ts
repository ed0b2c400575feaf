import type { circuitRelayServer, RelayReservation } from '@libp2p/circuit-relay-v2'
import type { PeerId } from '@libp2p/interface'
import { RELAYED_STREAMS, type RelayComponents } from './components.ts'

/** What a relay gives to others; see `RelayServerOptions` for units and defaults. */
export interface RelayLimits {
  readonly open: boolean
  readonly reservations: number
  readonly reservationsPerAddress: number
  readonly reservationMs: number
  readonly connectionBytes: number
  readonly connectionMs: number
}

export interface RelayServer {
  /** Whether a peer may not have a slot. */
  refuses(peerId: PeerId): boolean
  stop(): Promise<void>
}

/** Whoever asks for a way to a peer that is not there waits at most this long. */
const HOP_TIMEOUT_MS = 10_000

/** Serves as a relay on a running node. `admits`: whether trust knows a peer. */
export async function serveRelay(
  components: RelayComponents,
  limits: RelayLimits,
  admits: (peerId: string) => boolean,
): Promise<RelayServer> {
  const relay = await import('@libp2p/circuit-relay-v2')
  const server = relay.circuitRelayServer({
    hopTimeout: HOP_TIMEOUT_MS,
    maxInboundHopStreams: RELAYED_STREAMS,
    maxOutboundHopStreams: RELAYED_STREAMS,
    maxOutboundStopStreams: RELAYED_STREAMS,
    reservations: {
      maxReservations: limits.reservations,
      reservationTtl: limits.reservationMs,
      applyDefaultLimit: true,
      defaultDurationLimit: limits.connectionMs,
      defaultDataLimit: BigInt(limits.connectionBytes),
    },
  })(components) as ReturnType<ReturnType<typeof circuitRelayServer>> & {
    start(): Promise<void>
    stop(): Promise<void>
  }
  mendRenewal(server.reservations, limits.reservationMs)
  const { connectionManager, events } = components
  const hostOf = (peerId: PeerId): string | undefined =>
    connectionManager.getConnections(peerId)[0]?.remoteAddr.getComponents()[0]?.value
  // libp2p keeps a slot for its whole time, so that peers who come and go would use them all up.
  const release = ({ detail: peerId }: CustomEvent<PeerId>): void => {
    const slot = server.reservations.get(peerId)
    if (slot === undefined) return
    slot.signal.clear()
    server.reservations.delete(peerId)
  }
  events.addEventListener('peer:disconnect', release)
  await server.start()
  return {
    refuses(peerId) {
      if (!limits.open && !admits(peerId.toString())) return true
      if (server.reservations.has(peerId)) return false
      const host = hostOf(peerId)
      let beside = 0
      for (const [, { addr }] of server.reservations) if (addr.getComponents()[0]?.value === host) beside++
      return beside >= limits.reservationsPerAddress
    },
    async stop() {
      events.removeEventListener('peer:disconnect', release)
      for (const [, { signal }] of server.reservations) signal.clear()
      await server.stop()
    },
  }
}

type Slots = ReturnType<ReturnType<typeof circuitRelayServer>>['reservations']

/**
 * The timer that libp2p gives a slot forgets only the first of its ends when it is set anew: from the second renewal on it
 * fires at the end of the first, and takes the slot and all connections through it along. Each slot gets one that does not.
 */
function mendRenewal(slots: Slots, ms: number): void {
  const set = slots.set.bind(slots)
  slots.set = (peerId, slot) => {
    if (slots.get(peerId) !== slot) {
      slot.signal.clear()
      slot.signal = renewable(ms)
      slot.signal.addEventListener('abort', () => {
        if (slots.get(peerId) === slot) slots.delete(peerId)
      })
    }
    return set(peerId, slot)
  }
}

function renewable(ms: number): RelayReservation['signal'] {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const clear = () => clearTimeout(timer)
  const reset = (again: number) => {
    clear()
    timer = setTimeout(() => controller.abort(new Error('the slot has come to its end')), again)
    timer.unref()
  }
  reset(ms)
  return Object.assign(controller.signal, { clear, reset })
}
