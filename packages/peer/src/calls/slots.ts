import { HermesError } from '@hermes-peer/protocol'

/** Places for calls in flight, per agent and for the node; callers without one wait in line, most urgent first. */
export interface Slots {
  /** Calls `enter` with the way to give the place back, now or later; the returned function leaves the line. Throws `QUEUE_FULL`. */
  take(agentId: string, most: number, priority: number, enter: (release: () => void) => void): () => void
  readonly inFlight: number
}

interface Line {
  active: number
  waiting: { priority: number; most: number; enter: (release: () => void) => void }[]
}

export function createSlots({ perNode, mostWaiting }: { perNode: number; mostWaiting: number }): Slots {
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
      next(agentId, line)
      // The node's bound may have held up others too.
      if (inFlight === perNode - 1) for (const [other, waiting] of lines) next(other, waiting)
    })
  }

  const next = (agentId: string, line: Line): void => {
    while (line.waiting.length > 0 && inFlight < perNode) {
      const first = line.waiting[0] as Line['waiting'][number]
      if (line.active >= first.most) return
      line.waiting.shift()
      enter(agentId, line, first.enter)
    }
    if (line.active === 0 && line.waiting.length === 0) lines.delete(agentId)
  }

  return {
    take(agentId, most, priority, begin) {
      let line = lines.get(agentId)
      if (!line) {
        line = { active: 0, waiting: [] }
        lines.set(agentId, line)
      }
      if (line.active < most && inFlight < perNode && line.waiting.length === 0) {
        enter(agentId, line, begin)
        return () => undefined
      }
      if (line.waiting.length >= mostWaiting) {
        throw new HermesError('QUEUE_FULL', { message: `${line.waiting.length} calls wait for a place at ${agentId}` })
      }
      const entry = { priority, most, enter: begin }
      const before = line.waiting.findIndex((other) => other.priority < priority)
      line.waiting.splice(before < 0 ? line.waiting.length : before, 0, entry)
      const queue = line
      return () => {
        const at = queue.waiting.indexOf(entry)
        if (at >= 0) queue.waiting.splice(at, 1)
      }
    },
    get inFlight() {
      return inFlight
    },
  }
}
