import { type Header, HermesError } from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { WorkRecord } from '../delivery/dedup.ts'
import type { Arrived } from '../delivery/foreign.ts'

/** One life of an agent. */
export interface Life {
  readonly agentId: string
  readonly epoch: number
}

/** What became of a message whose answer this agent itself waits for. */
export type Heard =
  | { readonly is: 'answered'; readonly arrived: Arrived }
  | { readonly is: 'lost'; readonly reason: HermesError }

/** An attempt that was handed on: where its answer comes from, and where it goes. */
export interface Way {
  readonly leaf: string
  readonly header: Header
  /** The neighbour that it came from. */
  back: Life
  readonly next: Life
  /** Present for work; a question of the runtime (`hermes.…`) leaves no record. */
  readonly record: WorkRecord | undefined
  /** Who is told here in place of the originator: the agent that hands a task on waits for its ack. */
  readonly taken: ((heard: Heard) => void) | undefined
  /** The task that it asks about. */
  readonly taskId: string | undefined
  /** The originator has been told that the way is broken; an answer that comes all the same is still passed on. */
  told: boolean
}

/** Ways that answers go back, by leaf, until answered or expired. */
export interface Ways {
  get(leaf: string): Way | undefined
  /** Forgotten after `forMs`. Throws `BUSY` when too many are kept. */
  add(way: Way, forMs: number): void
  end(way: Way): void
  /** Throws `BUSY` when no more can be kept. */
  room(): void
  all(): Iterable<Way>
  /** Whether an answer of that agent is awaited. */
  awaits(agentId: string): boolean
  readonly size: number
  clear(): void
}

export function createWays({ clock, most }: { clock: Clock; most: number }): Ways {
  const ways = new Map<string, { way: Way; timer: Timer }>()
  const awaited = new Map<string, number>()
  const count = (agentId: string, by: number): void => {
    const left = (awaited.get(agentId) ?? 0) + by
    if (left > 0) awaited.set(agentId, left)
    else awaited.delete(agentId)
  }
  const end = (way: Way): void => {
    const kept = ways.get(way.leaf)
    if (kept?.way !== way) return
    clock.clear(kept.timer)
    ways.delete(way.leaf)
    count(way.next.agentId, -1)
  }
  const room = (): void => {
    if (ways.size < most) return
    throw new HermesError('BUSY', { message: `${ways.size} messages are on their way through here`, retryAfterMs: 100 })
  }
  return {
    get: (leaf) => ways.get(leaf)?.way,
    add(way, forMs) {
      room()
      const former = ways.get(way.leaf)
      if (former) end(former.way)
      ways.set(way.leaf, { way, timer: clock.after(Math.max(0, forMs), () => end(way)) })
      count(way.next.agentId, 1)
    },
    end,
    room,
    *all() {
      for (const { way } of [...ways.values()]) yield way
    },
    awaits: (agentId) => awaited.has(agentId),
    get size() {
      return ways.size
    },
    clear() {
      for (const { way } of [...ways.values()]) end(way)
    },
  }
}
