import type { Telemetry } from '../../telemetry/events.ts'

/** Which sources answer; tells of each change once. */
export interface SourceHealth {
  answered(source: string): void
  failed(source: string, reason: string): void
}

export function createSourceHealth(telemetry: Pick<Telemetry, 'emit'>): SourceHealth {
  /** Bounded by the sources of this peer. */
  const down = new Set<string>()
  return {
    answered(source) {
      if (down.delete(source)) telemetry.emit('directory.reachable', { source })
    },
    failed(source, reason) {
      if (down.has(source)) return
      down.add(source)
      telemetry.emit('directory.unreachable', { source, reason })
    },
  }
}
