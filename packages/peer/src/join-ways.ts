import { isHermesError } from '@hermes-peer/protocol'
import type { Network } from './network/network.ts'
import type { Settings } from './options.ts'
import type { Opened } from './seams.ts'

export interface JoinWaysOptions {
  readonly settings: Pick<Settings, 'bootstrap' | 'relay'>
  readonly opened: Pick<Opened, 'neighbours'>
  readonly network: Pick<Network, 'peerId'>
  join(address: string): Promise<void>
  /** That bootstrap peer is not there now. */
  absent(address: string): void
}

/** Joins through the bootstrap peers, the relays and the neighbours, all at once. Rejects with `INVALID_ADDRESS` alone: who is absent may come. */
export async function joinWays({ settings, opened, network, join, absent }: JoinWaysOptions): Promise<void> {
  const { bootstrap, relay } = settings
  const ways = [...new Set([...bootstrap, ...relay.via, ...opened.neighbours()])].filter(
    (way) => !way.includes(network.peerId),
  )
  await Promise.all(
    ways.map((way) =>
      join(way).catch((error: unknown) => {
        if (isHermesError(error) && error.code === 'INVALID_ADDRESS') {
          throw error.with({
            message: `bootstrap: ${error.message}`,
            details: { ...error.details, field: 'bootstrap' },
          })
        }
        if (bootstrap.includes(way)) absent(way)
      }),
    ),
  )
}
