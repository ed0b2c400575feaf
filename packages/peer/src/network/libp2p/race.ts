import type { Connection } from '@libp2p/interface'
import type { Multiaddr } from '@multiformats/multiaddr'
import { reasonOf, type Tried } from './dial-reason.ts'
import { type Deadline, deadline } from './signals.ts'

/** The next address is tried beside the one before after this (RFC 8305 recommends it): a dead host costs no more. */
const STAGGER_MS = 250

export interface RaceOptions {
  addresses: readonly Multiaddr[]
  dial(address: Multiaddr, signal: AbortSignal): Promise<Connection>
  /** Why an address that was tried has given no answer in time. */
  late(address: Multiaddr): string
  signal: AbortSignal
}

/** The first connection that came up, if any, and what was tried in vain. */
export interface RaceResult {
  readonly connection: Connection | undefined
  readonly tried: readonly Tried[]
}

/** Dials addresses in their order, each a little after the one before or at once when that has failed; never rejects. */
export function raceAddresses(options: RaceOptions): Promise<RaceResult> {
  const { addresses, dial, late, signal } = options
  return new Promise((resolve) => {
    const running = new Set<Deadline>()
    const reasons = new Map<Multiaddr, string>()
    let next = 0
    let settled = false
    let timer: NodeJS.Timeout | undefined

    const settle = (connection: Connection | undefined) => {
      settled = true
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      const tried = addresses
        .map((address, index) => ({
          address: address.toString(),
          reason: reasons.get(address) ?? (index < next ? late(address) : 'not tried'),
        }))
        .filter((_, index) => connection === undefined || reasons.has(addresses[index] as Multiaddr))
      for (const attempt of running) attempt.abort()
      resolve({ connection, tried })
    }
    const onAbort = () => settle(undefined)

    const startNext = (): void => {
      clearTimeout(timer)
      const address = addresses[next]
      if (address === undefined) {
        if (running.size === 0) settle(undefined)
        return
      }
      next += 1
      timer = setTimeout(startNext, STAGGER_MS)
      // Each attempt has a signal of its own, let go once it is over: Node ties a socket to it for good, so that a
      // later end of the caller's signal, or of the race, would destroy the connection.
      const attempt = deadline({ parents: [signal] })
      running.add(attempt)
      const over = () => {
        attempt.clear()
        running.delete(attempt)
      }
      dial(address, attempt.signal).then(
        (connection) => {
          over()
          // Two came up at the same time: one is enough.
          if (settled) connection.close().catch(() => undefined)
          else settle(connection)
        },
        (error: unknown) => {
          over()
          reasons.set(address, reasonOf(error))
          if (!settled) startNext()
        },
      )
    }

    if (signal.aborted) settle(undefined)
    else {
      signal.addEventListener('abort', onAbort, { once: true })
      startNext()
    }
  })
}
