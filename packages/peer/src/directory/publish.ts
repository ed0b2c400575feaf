import { providerCid } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Network } from '../network/network.ts'

/** Announces in the DHT that this peer provides a capability. What does not get there in time is announced again by the network. */
export function createPublisher(options: {
  network: Network
  networkName: string
  clock: Clock
  tunables: Tunables
}): (contract: { readonly name: string }) => void {
  const { network, networkName, clock, tunables } = options
  return ({ name }) => {
    const stop = new AbortController()
    const timer = clock.after(tunables.lookupTimeoutMs, () => stop.abort())
    network
      .provide(providerCid(networkName, name), { signal: stop.signal })
      .catch(() => undefined)
      .finally(() => clock.clear(timer))
  }
}
