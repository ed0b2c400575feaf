import type { Links } from './link/links.ts'
import type { Network, NetworkEvents } from './network/network.ts'
import type { Telemetry } from './telemetry/events.ts'

/** Carries what happens in the transport to whom it concerns. */
export function networkEvents(stages: {
  network: Network
  links: Links
  telemetry: Telemetry
  /** What others know of our addresses is out of date. */
  readdressed(): void
}): NetworkEvents {
  const { network, links, telemetry, readdressed } = stages
  return {
    linked: (peerId) => links.linked(peerId),
    direct: (peerId) => links.direct(peerId),
    readdressed,
    relayed({ relay, addresses, reason = '', retryMs = 0 }) {
      if (addresses.length > 0) telemetry.emit('relay.reserved', { relay, addresses })
      else
        telemetry.emit('relay.lost', { relay, reason, retryInMs: retryMs, reachable: network.addresses().length > 0 })
    },
  }
}
