import type { Clock } from '../clock.ts'
import type { AnyEvent, EventMap, EventName, EventOf, PeerEvents, Telemetry } from './events.ts'

type Listener = (event: never) => void

/**
 * Hands events to listeners; a listener that throws is reported once as `listener.failed` and never disturbs the runtime.
 * `outside` calls them, by default directly.
 */
export function createTelemetry({
  clock,
  outside = (run) => run(),
}: {
  clock: Clock
  outside?: (run: () => void) => void
}): Telemetry {
  const named = new Map<EventName, Set<Listener>>()
  const any = new Set<(event: AnyEvent) => void>()

  const emit = <K extends EventName>(type: K, event: EventMap[K]): void => {
    const listeners = named.get(type)
    if (!listeners && any.size === 0) return
    const whole = { type, at: clock.now(), ...event } as EventOf<K>
    const call = (listener: (event: never) => void) => {
      try {
        outside(() => listener(whole as never))
      } catch (cause) {
        if (type !== 'listener.failed') emit('listener.failed', { where: `events.on(${type})`, cause })
      }
    }
    for (const listener of listeners ?? []) call(listener)
    for (const listener of any) call(listener as Listener)
  }

  const events: PeerEvents = {
    on(type, listener) {
      const listeners = named.get(type) ?? new Set()
      named.set(type, listeners)
      listeners.add(listener as Listener)
      return () => {
        listeners.delete(listener as Listener)
        if (listeners.size === 0 && named.get(type) === listeners) named.delete(type)
      }
    },
    onAny(listener) {
      any.add(listener)
      return () => any.delete(listener)
    },
  }
  return { events, emit, wants: (type) => any.size > 0 || named.has(type) }
}
