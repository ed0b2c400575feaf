import type { Timeline } from '../clock/timeline.ts'
import type { SeededRandom } from '../random/seeded-random.ts'
import type { Trace } from '../trace.ts'
import type { Connection } from './connection.ts'
import type { Hits } from './hits.ts'
import type { Host } from './host.ts'
import type { Paths } from './paths.ts'
import type { WorldSettings } from './settings.ts'

/** What all parts of one memory world share. */
export interface Fabric {
  readonly timeline: Timeline
  readonly settings: WorldSettings
  /** For what happens on the wire, in the order in which it happens. */
  readonly random: SeededRandom
  readonly paths: Paths
  readonly hits: Hits
  readonly trace: Trace | undefined
  /** Peers that run. Bounded by what the test makes. */
  readonly hosts: Set<Host>
  /** Who listens where, by address without `/p2p/`. Bounded by the running peers. */
  readonly listeners: Map<string, Host>
  /** Connections with at least one living end. Bounded by the running peers and by what they leave half-open. */
  readonly connections: Set<Connection>
  /** Peers that do not read, by id. */
  readonly stalled: Set<string>
  /** A number that no other call gets: ports, connection ids. */
  nextNumber(kind: 'port' | 'connection'): number
}
