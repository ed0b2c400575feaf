import { checkName } from '@hermes-peer/protocol'
import type { ReceivedEvent } from './api.ts'
import { checkListener } from './checks.ts'
import type { Outside } from './outside.ts'
import type { Telemetry } from './telemetry/events.ts'

type Receive = (event: ReceivedEvent) => void

/** The user's listeners to events and topics; they may come before the peer is started, and outlive no stop. */
export interface Listeners {
  /** Both return the way to stop listening; the last one of a topic leaves it. */
  onEvent(name: string, receive: Receive): () => void
  onTopic(topic: string, receive: Receive): () => void
  /** Joins the topics that are listened to already, and each later one at once. */
  start(join: (topic: string) => () => void): void
  stop(): void
  /** A listener that throws keeps no other from hearing it. */
  deliver(event: ReceivedEvent): void
}

export function createListeners({ telemetry, outside }: { telemetry: Telemetry; outside: Outside }): Listeners {
  const events = new Map<string, Set<Receive>>()
  const topics = new Map<string, { listeners: Set<Receive>; leave: () => void }>()
  const nothing = (): void => undefined
  let join = (_: string): (() => void) => nothing

  return {
    onEvent(name, receive) {
      checkName('capability', name, 'event')
      checkListener(receive, 'receive')
      const listeners = events.get(name) ?? new Set()
      events.set(name, listeners)
      listeners.add(receive)
      return () => {
        listeners.delete(receive)
        if (listeners.size === 0 && events.get(name) === listeners) events.delete(name)
      }
    },
    onTopic(topic, receive) {
      checkName('topic', topic)
      checkListener(receive, 'receive')
      const entry = topics.get(topic) ?? { listeners: new Set<Receive>(), leave: join(topic) }
      topics.set(topic, entry)
      entry.listeners.add(receive)
      return () => {
        entry.listeners.delete(receive)
        if (entry.listeners.size > 0 || topics.get(topic) !== entry) return
        entry.leave()
        topics.delete(topic)
      }
    },
    start(through) {
      join = through
      for (const [topic, entry] of topics) entry.leave = join(topic)
    },
    stop() {
      for (const entry of topics.values()) entry.leave()
      join = () => nothing
    },
    deliver(event) {
      const listeners = event.kind === 'topic' ? topics.get(event.name)?.listeners : events.get(event.name)
      for (const listener of [...(listeners ?? [])]) {
        try {
          outside(() => listener(event))
        } catch (cause) {
          telemetry.emit('listener.failed', { where: `event ${event.name}`, cause })
        }
      }
    },
  }
}
