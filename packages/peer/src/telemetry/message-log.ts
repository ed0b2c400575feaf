import type { MessageType } from '@hermes-peer/protocol'
import type { Telemetry } from './events.ts'

/** One line per envelope, always under these names. Payloads are not in it. */
export interface MessageLogLine {
  message_id: string
  correlation_id: string | null
  trace_id: string
  sender: string
  receiver: string
  message_type: MessageType
  /** ISO 8601, UTC. */
  timestamp: string
}

/** Writes a line for each envelope sent and received; returns the way to stop. */
export function logMessages(telemetry: Telemetry, self: string, write: (line: MessageLogLine) => void): () => void {
  const line = (
    event: { messageId: string; correlationId?: string | undefined; traceId: string; type: string; at: number },
    type: MessageType,
    sender: string,
    receiver: string,
  ) =>
    write({
      message_id: event.messageId,
      correlation_id: event.correlationId ?? null,
      trace_id: event.traceId,
      sender,
      receiver,
      message_type: type,
      timestamp: new Date(event.at).toISOString(),
    })
  const stops = [
    telemetry.events.on('envelope.sent', (event) => line(event, event.messageType, event.maker ?? self, event.to)),
    telemetry.events.on('envelope.received', (event) => line(event, event.messageType, event.from, self)),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}
