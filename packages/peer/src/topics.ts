import { broadcastTopic, decodePayload, deepFreeze, HermesError, LIMITS, readEventPayload } from '@hermes-peer/protocol'
import type { ReceivedEvent } from './api.ts'
import type { StoredEvent } from './calls/stored-events.ts'
import type { ReceiveBroadcast } from './delivery/broadcasts.ts'
import type { Incoming } from './delivery/inbox.ts'
import type { Directory } from './directory/directory.ts'
import type { Network } from './network/network.ts'
import type { ServeGuard } from './policy/guard.ts'
import type { Telemetry } from './telemetry/events.ts'

export interface TopicsOptions {
  readonly networkName: string
  readonly network: Network
  readonly receiveBroadcast: ReceiveBroadcast
  readonly directory: Directory
  readonly telemetry: Telemetry
  readonly policy: Pick<ServeGuard, 'admit'>
  deliver(event: ReceivedEvent): void
}

/** Receives the broadcasts of a topic from now on; returns the way to leave it. */
export type JoinTopic = (topic: string) => () => void

export function createTopics(options: TopicsOptions): JoinTopic {
  const { networkName, network, receiveBroadcast, directory, telemetry, policy, deliver } = options
  return (topic) =>
    network.subscribe(broadcastTopic(networkName, topic), ({ data }) => {
      try {
        if (data.length > LIMITS.broadcast) throw new HermesError('LIMIT_EXCEEDED')
        const { header, payload, from, contentType } = receiveBroadcast(topic, data, (sender, fingerprint) =>
          directory.keysOf(sender).find((key) => key.fingerprint === fingerprint),
        )
        const admission = policy.admit({ from, via: [], capability: `topic:${topic}`, header })
        // A listener takes no place.
        admission.leave()
        const event = readEventPayload(decodePayload(contentType, payload))
        admission.judge(deepFreeze(event.data))
        const { message_id: messageId, correlation_id: correlationId, trace_id: traceId } = header
        telemetry.emit('event.received', { messageId, correlationId, traceId, from, name: topic })
        deliver({ kind: 'topic', name: topic, sender: from, data: event.data, messageId, traceId })
        return 'accept'
      } catch (error) {
        const refusal = HermesError.from(error)
        telemetry.emit('envelope.refused', { code: refusal.code, reason: refusal.message, from: `topic:${topic}` })
        return refusal.code === 'BAD_SIGNATURE' || refusal.code === 'MALFORMED' ? 'reject' : 'ignore'
      }
    })
}

/** Hands on what was sent to this agent alone. */
export function receiveEvents({ telemetry, deliver }: Pick<TopicsOptions, 'telemetry' | 'deliver'>) {
  return ({ header, from }: Incoming, data: unknown): void => {
    const { message_id: messageId, correlation_id: correlationId, trace_id: traceId } = header
    const name = header.target_capability as string
    telemetry.emit('event.received', { messageId, correlationId, traceId, from, name })
    deliver({ kind: 'event', name, sender: from, data, messageId, traceId })
  }
}

/** The same for one that was stored before it was acknowledged. */
export function handOnStored({ telemetry, deliver }: Pick<TopicsOptions, 'telemetry' | 'deliver'>) {
  return ({ from, name, data, messageId, correlationId, traceId }: StoredEvent): void => {
    telemetry.emit('event.received', { messageId, correlationId, traceId, from, name })
    deliver({ kind: 'event', name, sender: from, data: deepFreeze(data), messageId, traceId })
  }
}
