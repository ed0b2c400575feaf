import { decodePayload, readHeartbeatPayload } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Link } from '../link/link.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Incoming } from './inbox.ts'

/** Takes in what a heartbeat tells: which frames have arrived, the clock of the other side, and whether it wants one back. */
export function hearHeartbeat(options: {
  clock: Clock
  tunables: Tunables
  telemetry: Telemetry
  answer(link: Link): void
}): (incoming: Incoming) => void {
  const { clock, tunables, telemetry, answer } = options
  return ({ header, payload, link, receivedAt }) => {
    const beat = readHeartbeatPayload(decodePayload(header.content_type, payload))
    link.receipt(beat.received)
    // One way only: the time on the wire is part of it, which the tolerance covers.
    const offsetMs = beat.time - clock.now() + Math.round(clock.monotonic() - receivedAt)
    // No peer may move the clock that its envelopes are judged by so far; and a jump of one's own wall clock is no reason to
    // give up a link that works.
    if (Math.abs(offsetMs) > tunables.maxClockOffsetMs) {
      if (telemetry.wants('link.clock'))
        telemetry.emit('link.clock', { agentId: link.remote.agentId, linkId: link.id, offsetMs })
      return
    }
    link.offsetMs = offsetMs
    if (beat.reply) {
      link.sentReceipt()
      answer(link)
    }
  }
}
