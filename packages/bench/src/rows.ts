import type { Row } from './peers/peer.ts'
import type { ScenarioName } from './scenarios/scenario.ts'

export type RowName = 'floor' | 'hermes-peer'

export interface RowEntry {
  readonly name: RowName
  readonly label: string
  /** What it can do at all. */
  readonly scenarios: readonly ScenarioName[]
  load(): Promise<Row>
}

export const ROWS: readonly RowEntry[] = [
  {
    name: 'floor',
    label:
      'raw TCP, both messages signed and verified with Ed25519 (node:crypto); does not encrypt, route or deduplicate',
    scenarios: ['latency', 'throughput', 'stream', 'big', 'cold', 'idle'],
    load: async () => (await import('./peers/floor.ts')).row,
  },
  {
    name: 'hermes-peer',
    label: 'a call by capability: routed, signed, encrypted, ordered, deduplicated, traced',
    scenarios: ['latency', 'throughput', 'stream', 'big', 'cold', 'idle', 'discovery', 'failover', 'journal'],
    load: async () => (await import('./peers/hermes.ts')).row,
  },
]

/** The row that ratios refer to. */
export const BASE: RowName = 'floor'
