import type { WatchChange } from '../api.ts'
import type { Query } from '../routing/query.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { type Entry, offered } from './entry.ts'

/** Whoever wants to hear of agents that can serve a query. */
export interface Watchers {
  /** Tells at once of those that are online; returns the way to stop. */
  add(query: Query, report: (change: WatchChange) => void): () => void
  tell(type: WatchChange['type'], entry: Entry): void
  /** Whether somebody watches that very agent. */
  name(agentId: string): boolean
  clear(): void
}

interface Watcher {
  readonly query: Query
  readonly report: (change: WatchChange) => void
  /** Agents it has been told of: bounded by the directory. */
  readonly joined: Set<string>
}

export function createWatchers({ telemetry, all }: { telemetry: Telemetry; all(): Iterable<Entry> }): Watchers {
  const watchers = new Set<Watcher>()

  const call = (watcher: Watcher, change: WatchChange): void => {
    try {
      watcher.report(change)
    } catch (cause) {
      telemetry.emit('listener.failed', { where: 'watch', cause })
    }
  }
  /** What a change means to one watcher depends on what it has been told before. */
  const tell = (watcher: Watcher, type: WatchChange['type'], entry: Entry): void => {
    const { agentId } = entry
    const { query, joined } = watcher
    const known = joined.has(agentId)
    const gone = type === 'left' || type === 'offline'
    if (gone || !matches(entry, query)) {
      if (!known) return
      joined.delete(agentId)
      call(watcher, { type: gone ? type : 'left', agentId })
    } else if (type === 'suspect') {
      if (known) call(watcher, { type, agentId })
    } else {
      joined.add(agentId)
      call(watcher, { type: known ? 'changed' : 'joined', agentId })
    }
  }

  return {
    add(query, report) {
      const watcher: Watcher = { query, report, joined: new Set() }
      watchers.add(watcher)
      for (const entry of [...all()]) {
        if (entry.status === 'online' && matches(entry, query)) tell(watcher, 'joined', entry)
      }
      return () => watchers.delete(watcher)
    },
    tell(type, entry) {
      for (const watcher of watchers) tell(watcher, type, entry)
    },
    name: (agentId) => [...watchers].some(({ query }) => query.agent === agentId),
    clear: () => watchers.clear(),
  }
}

/** Whether an agent is one that the query is about; filters are for the router. */
export function matches(entry: Entry, { capability, agent }: Query): boolean {
  if (agent !== undefined && entry.agentId !== agent) return false
  return capability === undefined || offered(entry).includes(capability) || entry.capabilities.includes(capability)
}
