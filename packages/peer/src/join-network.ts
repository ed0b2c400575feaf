import { isHermesError } from '@hermes-peer/protocol'

export interface JoinOptions {
  /** Addresses that the user gave, and those of neighbours on this machine. */
  readonly bootstrap: readonly string[]
  readonly neighbours: readonly string[]
  readonly ownPeerId: string
  join(address: string): Promise<void>
  /** An address that the user gave does not answer so far. */
  failed(address: string): void
}

/** Joins the network through all at once, whoever answers. Rejects with `INVALID_ADDRESS` for one that can never answer. */
export async function joinNetwork({ bootstrap, neighbours, ownPeerId, join, failed }: JoinOptions): Promise<void> {
  const ways = [...new Set([...bootstrap, ...neighbours])].filter((way) => !way.includes(ownPeerId))
  await Promise.all(
    ways.map((way) =>
      join(way).catch((error: unknown) => {
        if (isHermesError(error) && error.code === 'INVALID_ADDRESS') {
          throw error.with({
            message: `bootstrap: ${error.message}`,
            details: { ...error.details, field: 'bootstrap' },
          })
        }
        if (bootstrap.includes(way)) failed(way)
      }),
    ),
  )
}
