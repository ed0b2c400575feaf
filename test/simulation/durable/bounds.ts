import type { Tunables } from 'hermes-peer'
import type { Observed } from '../checkers.ts'

/** Bounds of queues in a run of long work: so small that they are reached. */
export const BOUNDS = {
  windowItems: 8,
  inFlightPerPeer: 4,
  outboxPerPeer: 5,
  /** Handlers of a capability that may run at a time at one peer. */
  concurrency: { task_none: 8, task_once: 8, call_once: 4, pieces: 4 },
} as const

export const TUNING: Partial<Tunables> = {
  windowItems: BOUNDS.windowItems,
  inFlightPerPeer: BOUNDS.inFlightPerPeer,
  outboxPerPeer: BOUNDS.outboxPerPeer,
}

/** How full something was once the instant in which it changed was over: within one, what is new may come before what is gone. */
interface Gauge {
  enter(key: string, item: string): void
  leave(key: string, item: string): void
  /** Forgets all that fits. */
  drop(fits: (key: string) => boolean): void
  /** Keys over their bound, with the most that was counted. */
  over(bound: (key: string) => number): [string, number][]
  rest(): void
}

function createGauge(): Gauge {
  const items = new Map<string, Set<string>>()
  const peaks = new Map<string, number>()
  const touched = new Set<string>()
  return {
    enter(key, item) {
      items.set(key, (items.get(key) ?? new Set()).add(item))
      touched.add(key)
    },
    leave: (key, item) => void items.get(key)?.delete(item),
    drop(fits) {
      for (const key of items.keys()) if (fits(key)) items.delete(key)
    },
    over: (bound) => [...peaks].filter(([key, peak]) => peak > bound(key)),
    rest() {
      for (const key of touched) peaks.set(key, Math.max(peaks.get(key) ?? 0, items.get(key)?.size ?? 0))
      touched.clear()
    },
  }
}

/** What waits, is held or runs at a time stays within its bound: at callers, in windows, at providers. */
export function queuesWithinBounds({ observed }: { readonly observed: readonly Observed[] }): string[] {
  /** Calls on their way, by caller and agent. */
  const inFlight = createGauge()
  const asked = new Map<string, string>()
  /** Envelopes held behind a gap, by reader and sender. */
  const held = createGauge()
  /** Handlers, by peer and capability. */
  const handlers = createGauge()
  const gauges = [inFlight, held, handlers]
  const settled = (key: string): void => {
    const agent = asked.get(key)
    if (agent !== undefined) inFlight.leave(agent, key)
    asked.delete(key)
  }
  let now = 0
  for (const { at, agentId, life, event } of observed) {
    if (at > now) for (const gauge of gauges) gauge.rest()
    now = at
    const here = `${agentId}/${life}`
    switch (event.type) {
      case 'peer.started':
        // What a former life had is gone with it.
        for (const gauge of gauges) gauge.drop((key) => key.startsWith(`${agentId}/`) && !key.startsWith(here))
        break
      case 'call.attempt': {
        const key = `${here} ${event.messageId}`
        settled(key)
        // Streams have places of their own.
        if (event.capability === 'pieces') break
        asked.set(key, `${here} → ${event.agentId}`)
        inFlight.enter(`${here} → ${event.agentId}`, key)
        break
      }
      case 'call.retry':
      case 'call.failover':
      case 'call.ended':
        settled(`${here} ${event.messageId}`)
        break
      case 'link.down':
        inFlight.drop((key) => key === `${here} → ${event.agentId}`)
        break
      case 'link.up':
        held.drop((key) => key === `${here} ← ${event.agentId}`)
        break
      case 'envelope.received':
        // Answered: what is asked again after a while is on its way again only then.
        if (event.messageType === 'response' || event.messageType === 'error') {
          const key = `${here} ${event.messageId}`
          if (asked.get(key) === `${here} → ${event.from}`) settled(key)
        }
        if (event.sequence > 0) held.enter(`${here} ← ${event.from}`, event.messageId)
        break
      case 'envelope.admitted':
      case 'envelope.refused':
      case 'dedup.joined':
      case 'dedup.stored':
      case 'task.joined':
        held.leave(`${here} ← ${event.from}`, event.messageId ?? '')
        break
      case 'handler.started':
        handlers.enter(`${here} ${event.capability}`, `${event.from} ${event.messageId}`)
        break
      case 'handler.ended':
        handlers.leave(`${here} ${event.capability}`, `${event.from} ${event.messageId}`)
        break
    }
  }
  for (const gauge of gauges) gauge.rest()
  const mostHandlers = (key: string): number => {
    const capability = key.split(' ')[1] as keyof typeof BOUNDS.concurrency
    return BOUNDS.concurrency[capability] ?? Number.POSITIVE_INFINITY
  }
  return [
    ...inFlight.over(() => BOUNDS.inFlightPerPeer).map(([key, most]) => `${key}: ${most} calls in flight`),
    ...held.over(() => BOUNDS.windowItems).map(([key, most]) => `${key}: ${most} envelopes held`),
    ...handlers.over(mostHandlers).map(([key, most]) => `${key}: ${most} handlers at a time`),
  ]
}
