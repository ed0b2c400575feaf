import type { Tunables } from '../defaults.ts'
import type { Telemetry } from '../telemetry/events.ts'

interface ProgressOptions {
  readonly telemetry: Telemetry
  readonly tunables: Tunables
  readonly header: {
    readonly message_id: string
    readonly correlation_id?: string | undefined
    readonly trace_id: string
    readonly payload_size: number
  }
  readonly agentId: string
  readonly direction: 'in' | 'out'
}

/** Tells how far a payload has come, every `progressBytes` and at its end. */
export function progressOf({ telemetry, tunables, header, agentId, direction }: ProgressOptions) {
  const total = header.payload_size
  let next = tunables.progressBytes
  return (bytes: number): void => {
    if (bytes < next && bytes < total) return
    next = bytes + tunables.progressBytes
    telemetry.emit('payload.progress', {
      messageId: header.message_id,
      correlationId: header.correlation_id,
      traceId: header.trace_id,
      agentId,
      direction,
      bytes,
      total,
    })
  }
}
