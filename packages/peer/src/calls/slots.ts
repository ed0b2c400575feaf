import { HermesError } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import { onAbort } from '../signals.ts'
import { type AgeingQueue, createAgeingQueue, type Waiting } from './queue.ts'

/**
 * Places for calls in flight, per agent and for the node; callers without one wait in line, most urgent first, and rise by
 * one level of priority per `ageMs`. What waits for one agent holds up no call to another; where the node's bound holds up
 * several agents' lines, they take turns.
 */
export interface Slots {
  /** Calls `enter` with the way to give the place back, now or later; the returned function leaves the line. Throws `QUEUE_FULL`. */
  take(agentId: string, most: number, priority: number, enter: (release: () => void) => void): () => void
  readonly inFlight: number
}

export interface SlotsOptions {
  readonly perNode: number
  /** Per agent. */
  readonly mostWaiting: number
  readonly clock: Clock
  readonly ageMs: number
}

interface Entry extends Waiting {
  readonly most: number
  readonly enter: (release: () => void) => void
}

interface Line {
  active: number
  readonly waiting: AgeingQueue<Entry>
}

export function createSlots({ perNode, mostWaiting, clock, ageMs }: SlotsOptions): Slots {
  /** By agent, whose turn is next first; a line without calls is removed. */
  const lines = new Map<string, Line>()
  let inFlight = 0

  const enter = (agentId: string, line: Line, begin: (release: () => void) => void): void => {
    line.active++
    inFlight++
    let released = false
    begin(() => {
      if (released) return
      released = true
      line.active--
      inFlight--
      // The node's bound may have held up others too.
      if (inFlight === perNode - 1) rotate()
      else while (admitOne(agentId, line)) {}
      tidy(agentId, line)
    })
  }

  const admitOne = (agentId: string, line: Line): boolean => {
    const first = inFlight < perNode ? line.waiting.peek() : undefined
    if (!first || line.active >= first.most) return false
    line.waiting.shift()
    enter(agentId, line, first.enter)
    return true
  }

  /** One place after the other to whoever has waited for a turn longest. */
  const rotate = (): void => {
    for (let entered = true; entered && inFlight < perNode; ) {
      entered = false
      for (const [agentId, line] of [...lines]) {
        if (!admitOne(agentId, line)) continue
        lines.delete(agentId)
        lines.set(agentId, line)
        entered = true
      }
    }
  }

  const tidy = (agentId: string, line: Line): void => {
    if (line.active === 0 && line.waiting.size === 0 && lines.get(agentId) === line) lines.delete(agentId)
  }

  return {
    take(agentId, most, priority, begin) {
      let line = lines.get(agentId)
      if (!line) {
        line = { active: 0, waiting: createAgeingQueue({ clock, ageMs }) }
        lines.set(agentId, line)
      }
      const own = line
      if (own.active < most && inFlight < perNode && own.waiting.size === 0) {
        enter(agentId, own, begin)
        return () => undefined
      }
      if (own.waiting.size >= mostWaiting) {
        throw new HermesError('QUEUE_FULL', { message: `${own.waiting.size} calls wait for a place at ${agentId}` })
      }
      const entry: Entry = { priority, since: clock.monotonic(), most, enter: begin }
      own.waiting.push(entry)
      return () => {
        own.waiting.remove(entry)
        tidy(agentId, own)
      }
    },
    get inFlight() {
      return inFlight
    },
  }
}

/** A place, given back by the result. Rejects with `QUEUE_FULL`, or the signal's reason; that is looked at only where there is to be waited. */
export function placeAt(
  slots: Slots,
  { agentId, most, priority }: { agentId: string; most: number; priority: number },
  until: { readonly signal: AbortSignal },
): Promise<() => void> {
  return new Promise((resolve, reject) => {
    let placed = false
    let settle = (): void => undefined
    const leave = slots.take(agentId, most, priority, (release) => {
      placed = true
      settle()
      resolve(release)
    })
    if (placed) return
    settle = onAbort(until.signal, () => {
      leave()
      reject(HermesError.from(until.signal.reason, 'CANCELLED'))
    })
  })
}
