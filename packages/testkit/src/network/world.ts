import type { Network } from 'hermes-peer'
import type { Timeline } from '../clock/timeline.ts'
import type { SeededRandom } from '../random/seeded-random.ts'
import type { Trace } from '../trace.ts'
import { connectionsBetween } from './connection.ts'
import { createDht } from './dht.ts'
import type { Fabric } from './fabric.ts'
import { createFaults, type WorldFaults } from './faults.ts'
import { createGossip } from './gossip.ts'
import { createHits } from './hits.ts'
import { createMemoryNetwork, type MemoryNetworkOptions } from './memory-network.ts'
import { createPaths } from './paths.ts'
import { DEFAULT_SETTINGS, type WorldSettings } from './settings.ts'

/**
 * A network in memory that promises what TCP promises, and breaks as networks do. The same seed and the same calls give the
 * same run, event for event.
 */
export interface MemoryWorld {
  /** The network of one peer. After a crash or a stop the next one with the same id is its new life. */
  network(options: MemoryNetworkOptions): Network
  readonly faults: WorldFaults
  /** Living connections between two peers. */
  connections(a: string, b: string): number
}

export interface MemoryWorldOptions {
  timeline: Timeline
  random: SeededRandom
  /** Gets every connection, arrival and gossip message. */
  trace?: Trace
  settings?: Partial<WorldSettings>
}

/** First port that is given out; listeners and callers share one count, as nothing else uses them. */
const FIRST_PORT = 20_000

export function createMemoryWorld(options: MemoryWorldOptions): MemoryWorld {
  const { timeline, random, trace } = options
  const settings = { ...DEFAULT_SETTINGS, ...options.settings }
  const numbers = { port: FIRST_PORT, connection: 0 }
  const fabric: Fabric = {
    timeline,
    settings,
    random: random.fork('wire'),
    paths: createPaths({ timeline, random: random.fork('paths'), latencyMs: settings.latencyMs }),
    hits: createHits(),
    trace,
    hosts: new Set(),
    listeners: new Map(),
    connections: new Set(),
    stalled: new Set(),
    nextNumber: (kind) => numbers[kind]++,
  }
  const world = { fabric, dht: createDht(fabric), gossip: createGossip(fabric) }
  return {
    network: (networkOptions) => createMemoryNetwork(world, networkOptions),
    faults: createFaults(world),
    connections: (a, b) => connectionsBetween(fabric, a, b).length,
  }
}
