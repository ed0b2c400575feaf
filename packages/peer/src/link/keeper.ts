import { HermesError } from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Link } from './link.ts'
import type { Links } from './links.ts'

export interface KeeperOptions {
  readonly links: Links
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  /** Whether something waits for an answer of that agent. */
  pending(agentId: string): boolean
  /** Writes a heartbeat; `reply` asks for one back at once. */
  beat(link: Link, reply: boolean): void
}

/** Heartbeats, receipts, and the one judge of silence; driven by a single ticker for all links. */
export interface Keeper {
  start(): void
  stop(): void
  /** A frame has come: sends the receipt when it is due. */
  received(link: Link): void
}

export function createKeeper(options: KeeperOptions): Keeper {
  const { links, clock, tunables, telemetry, pending, beat } = options
  const beaten = new WeakMap<Link, number>()
  let timer: Timer | undefined
  let tickedAt = 0

  const send = (link: Link, reply: boolean): void => {
    beaten.set(link, clock.monotonic())
    link.sentReceipt()
    try {
      beat(link, reply)
    } catch (error) {
      link.destroy(HermesError.from(error))
    }
  }

  const judge = (link: Link, now: number): void => {
    if (link.stalledAt !== undefined && now - link.stalledAt > tunables.writeStallMs) {
      link.destroy(
        new HermesError('PEER_UNREACHABLE', {
          message: `${link.remote.agentId} has read nothing for ${tunables.writeStallMs} ms`,
        }),
      )
      return
    }
    const silence = now - link.heardAt
    const allowed = pending(link.remote.agentId) ? tunables.silenceMs : tunables.idleSilenceMs
    if (silence >= allowed) {
      if (link.probes > 0 && now - link.probedAt < tunables.probeMs) return
      if (link.probes >= tunables.probesLost) {
        link.destroy(
          new HermesError('PEER_UNREACHABLE', {
            message: `${link.remote.agentId} has been silent for ${Math.round(silence / 1000)} s and answered none of ${link.probes} probes`,
          }),
        )
        return
      }
      link.probes++
      link.probedAt = now
      telemetry.emit('link.probe', { agentId: link.remote.agentId, linkId: link.id, unanswered: link.probes })
      send(link, true)
    } else if (now - (beaten.get(link) ?? link.openedAt) >= tunables.heartbeatMs) {
      send(link, false)
    }
  }

  const tick = (): void => {
    // Armed first: whatever one link does to this round, there is a next one.
    timer = clock.after(tunables.tickMs, tick)
    const now = clock.monotonic()
    // While we stood still nobody could be heard: silence proves nothing.
    if (now - tickedAt > tunables.tickMs + tunables.stallMs) for (const link of links.all()) link.forgiveSilence()
    tickedAt = now
    for (const link of [...links.all()]) judge(link, now)
    links.relieve()
  }

  return {
    start() {
      tickedAt = clock.monotonic()
      timer = clock.after(tunables.tickMs, tick)
    },
    stop() {
      clock.clear(timer)
    },
    received(link) {
      if (link.receiptDue) send(link, false)
    },
  }
}
