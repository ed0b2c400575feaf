import { isHermesError, providerCid } from '@hermes-peer/protocol'
import type { DirectoryContext, DirectoryFactory, DirectorySource } from './source.ts'
import { closed, unreachable } from './unreachable.ts'

/** The DHT of the network, which needs no server: what is used unless `directories` says otherwise. */
export function dhtDirectory(): DirectoryFactory {
  return createDhtSource
}

const NAME = 'dht'

function createDhtSource({ network, networkName, seeded }: DirectoryContext): DirectorySource {
  /** Bounded by the capabilities of this peer. */
  let announced = new Set<string>()
  /** Whether there ever was anybody to ask: of a network of one, nobody is missing. */
  let met = seeded
  let over = false
  const check = (): void => {
    if (over) throw closed(NAME)
  }
  const cidOf = (capability: string): Uint8Array => providerCid(networkName, capability)

  return {
    name: NAME,
    // The network announces again by itself, to whoever is there then.
    leased: false,
    async register({ capabilities }, { signal }) {
      check()
      const wanted = new Set(capabilities)
      const gone = [...announced].filter((name) => !wanted.has(name))
      const fresh = [...wanted].filter((name) => !announced.has(name))
      announced = wanted
      await Promise.all(gone.map((name) => network.unprovide(cidOf(name)).catch(() => undefined)))
      // What does not get there in time is announced again by the network.
      await Promise.all(fresh.map((name) => network.provide(cidOf(name), { signal }).catch(() => undefined)))
    },
    async renew() {
      check()
    },
    async unregister() {
      check()
      const all = [...announced]
      announced = new Set()
      await Promise.all(all.map((name) => network.unprovide(cidOf(name)).catch(() => undefined)))
    },
    async *find(capability, { signal }) {
      check()
      try {
        yield* network.findProviders(cidOf(capability), { signal })
        met = true
      } catch (error) {
        if (isHermesError(error) && (error.code === 'STOPPED' || error.code === 'NOT_STARTED')) throw error
        if (met) throw unreachable(NAME, error)
      }
    },
    async close() {
      over = true
    },
  }
}
