import { HermesError } from '@hermes-peer/protocol'
import type { Clock } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Network } from '../../network/network.ts'
import type { Random } from '../../random.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import { createSourceHealth, type SourceHealth } from './health.ts'
import { createRegistrar, type Registrar } from './registrar.ts'
import type { DirectoryFactory, DirectorySource, Registration } from './source.ts'

export interface SourcesOptions {
  readonly settings: {
    readonly agentId: string
    readonly network: string
    readonly directories: readonly DirectoryFactory[]
    /** Addresses to join through that the user gave. */
    readonly bootstrap: readonly string[]
  }
  readonly network: Network
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  capabilities(): readonly string[]
}

/** The directories of one peer, and its registration in them. */
export interface Sources {
  readonly all: readonly DirectorySource[]
  readonly health: SourceHealth
  readonly registrar: Registrar
  /** Rejects with `INVALID_OPTION` when one is set up wrongly; waits for no server. */
  open(): Promise<void>
  /** Never rejects. */
  close(): Promise<void>
}

export function createSources(options: SourcesOptions): Sources {
  const { settings, network, clock, random, tunables, telemetry } = options
  const context = {
    networkName: settings.network,
    peerId: network.peerId,
    clock,
    random,
    network,
    seeded: settings.bootstrap.length > 0,
    report: (text: string) => telemetry.emit('peer.notice', { text }),
  }
  const all = settings.directories.map((make) => make(context))
  const names = new Set(all.map(({ name }) => name))
  if (names.size < all.length) {
    throw new HermesError('INVALID_OPTION', {
      message: `directories: one is listed twice: ${all.map(({ name }) => name).join(', ')}`,
      details: { field: 'directories' },
    })
  }
  const health = createSourceHealth(telemetry)
  const own = (): Omit<Registration, 'leaseMs'> => ({
    agentId: settings.agentId,
    peerId: network.peerId,
    addresses: network.addresses(),
    capabilities: options.capabilities(),
  })
  return {
    all,
    health,
    registrar: createRegistrar({ sources: all, health, clock, random, tunables, own }),
    async open() {
      for (const source of all) await source.open?.()
    },
    async close() {
      await Promise.all(all.map((source) => source.close().catch(() => undefined)))
    },
  }
}
