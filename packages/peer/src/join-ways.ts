import { isHermesError } from '@hermes-peer/protocol'
import type { Network } from './network/network.ts'
import type { Settings } from './options.ts'
import type { Random } from './random.ts'
import type { Opened } from './seams.ts'

export interface JoinWaysOptions {
  readonly settings: Pick<Settings, 'bootstrap'>
  readonly opened: Pick<Opened, 'neighbours'>
  readonly network: Pick<Network, 'peerId'>
  readonly random: Random
  join(address: string): Promise<void>
  /** That bootstrap peer is not there now. */
  absent(address: string): void
}

/**
 * Neighbours on this machine that are joined through at a time: whoever is reached tells of all others, and fifty agents that all begin
 * by meeting each other need a minute of processor time for it.
 */
const AT_A_TIME = 8

/**
 * Joins through the bootstrap peers, all at once, and through some neighbours: further ones only as long as none of them answered, as those
 * that were killed are still listed. Rejects with `INVALID_ADDRESS` alone: who is absent may come.
 */
export async function joinWays(options: JoinWaysOptions): Promise<void> {
  const { settings, opened, network, random, join, absent } = options
  const others = (ways: readonly string[]) => [...new Set(ways)].filter((way) => !way.includes(network.peerId))
  const bootstrap = others(settings.bootstrap)
  const neighbours = others(opened.neighbours()).filter((way) => !bootstrap.includes(way))
  const reached = async (way: string): Promise<boolean> => {
    try {
      await join(way)
      return true
    } catch (error) {
      if (isHermesError(error) && error.code === 'INVALID_ADDRESS') {
        throw error.with({ message: `bootstrap: ${error.message}`, details: { ...error.details, field: 'bootstrap' } })
      }
      if (bootstrap.includes(way)) absent(way)
      return false
    }
  }
  const throughNeighbours = async (): Promise<void> => {
    const waiting = neighbours.length > AT_A_TIME ? shuffled(neighbours, random) : neighbours
    for (let at = 0; at < waiting.length; at += AT_A_TIME) {
      if ((await Promise.all(waiting.slice(at, at + AT_A_TIME).map(reached))).includes(true)) return
    }
  }
  await Promise.all([...bootstrap.map(reached), throughNeighbours()])
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
