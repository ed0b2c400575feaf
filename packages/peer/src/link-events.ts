import type { Pending } from './calls/pending.ts'
import type { Server } from './calls/server.ts'
import type { SessionRuntime } from './calls/session.ts'
import type { Streaming } from './calls/streaming.ts'
import type { Tasks } from './calls/tasks/tasks.ts'
import type { Clock } from './clock.ts'
import type { Tunables } from './defaults.ts'
import type { Inbox } from './delivery/inbox.ts'
import type { Outbox } from './delivery/outbox.ts'
import type { Directory } from './directory/directory.ts'
import type { PresenceBeacon } from './directory/presence.ts'
import type { Forwarding } from './forwarding/forwarding.ts'
import type { IdentityRuntime } from './identity-runtime.ts'
import type { Keeper } from './link/keeper.ts'
import type { Links, LinksEvents } from './link/links.ts'
import type { Reconnector } from './link/reconnect.ts'

/** The stages that links tell what happens to them. */
export interface LinkStages {
  readonly links: Links
  readonly outbox: Outbox
  readonly inbox: Inbox
  readonly pending: Pending
  readonly server: Server
  readonly forwarding: Forwarding
  readonly streaming: Streaming
  readonly sessions: SessionRuntime['table']
  readonly directory: Directory
  readonly beacon: PresenceBeacon
  readonly tasks: Tasks
  readonly keeper: Keeper
  readonly reconnector: Reconnector
  readonly identity: IdentityRuntime
  readonly clock: Clock
  readonly tunables: Tunables
}

/** Carries what happens to links to whom it concerns. `stages` is asked when something happens: links are there before them. */
export function linkEvents(stages: () => LinkStages): LinksEvents {
  let known: LinkStages | undefined
  // Once per frame is too often to gather them anew.
  const all = (): LinkStages => {
    known ??= stages()
    return known
  }
  let doubted = false
  /** Whoever is linked to us takes us for the one: one voice against them does not count. */
  const fallSilent = (): void => {
    const { links, beacon } = all()
    for (const { state } of links.all()) if (state === 'open') return
    beacon.hold(true)
  }
  return {
    up(link) {
      const { links, inbox, reconnector, sessions, directory, tasks, beacon, identity } = all()
      let others = 0
      for (const other of links.all()) if (other.remote.agentId === link.remote.agentId) others++
      inbox.linked(link, others === 1)
      reconnector.end(link.remote.agentId)
      sessions.linked(link.remote.agentId, link.remote.epoch)
      directory.linked(link)
      tasks.linked(link.remote.agentId)
      identity.linked(link)
      doubted = false
      beacon.hold(false)
    },
    accused() {
      doubted = true
      fallSilent()
    },
    frame(link, body) {
      const { inbox, keeper } = all()
      inbox.receive(link, body)
      keeper.received(link)
    },
    unblocked: (link) => all().outbox.unblocked(link),
    retired(link) {
      const { outbox } = all()
      outbox.retired(link)
      // Its answer tells what has arrived of what went over it; of the rest nobody knows, once it is closed.
      outbox.heartbeat(link, true)
    },
    down(link, reason, last) {
      const { outbox, pending, server, forwarding, streaming, directory, reconnector, clock, tunables } = all()
      outbox.lost(link, reason)
      const { agentId: other, epoch: life } = link.remote
      if (reason.code === 'PEER_RESTARTED') {
        // Its new link is there already: this is no disconnect, but the end of everything between us and its former life.
        pending.disconnected(other, life, reason)
        server.callerRestarted(other, life)
        forwarding.restarted(other, life, reason)
      }
      if (last || reason.code === 'PEER_RESTARTED') streaming.lost(link, reason)
      if (doubted) fallSilent()
      if (!last) return
      pending.disconnected(other, life, reason)
      server.callerLost(other)
      forwarding.lost(other, reason)
      const graceful = reason.code === 'STOPPED' || reason.details.orderly === true
      directory.unlinked(other, graceful)
      // The dialler comes back first: both at once would only make two links of which one is closed again.
      if (!graceful && directory.get(other) && link.direction === 'outbound') {
        reconnector.begin(other, clock.monotonic() - link.openedAt > tunables.reconnectStableMs)
      }
    },
  }
}
