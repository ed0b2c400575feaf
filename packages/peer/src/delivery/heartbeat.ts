import { decodePayload, readHeartbeatPayload } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Link } from '../link/link.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Incoming } from './inbox.ts'

/** Beats by which the clock of the other side is judged: one that steps back is followed after so many. */
const MEASUREMENTS = 2

/** Takes in what a heartbeat tells: which frames have arrived, the clock of the other side, and whether it wants one back. */
export function hearHeartbeat(options: {
  clock: Clock
  tunables: Tunables
  telemetry: Telemetry
  answer(link: Link): void
}): (incoming: Incoming) => void {
  const { clock, tunables, telemetry, answer } = options
  /** The latest measurements of each link, that of its handshake first; gone with the link. */
  const measured = new WeakMap<Link, number[]>()
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
    const latest = [...(measured.get(link) ?? [link.offsetMs]), offsetMs].slice(-MEASUREMENTS)
    measured.set(link, latest)
    // What was held up on its way, as behind a broken network, tells a time that is too early, and never one that is too late.
    link.offsetMs = Math.max(...latest)
    if (beat.reply) {
      link.sentReceipt()
      answer(link)
    }
  }
}
