import type { Clock } from '../../clock.ts'
import type { FoundPeer } from '../../network/network.ts'
import {
  type DirectoryContext,
  type DirectoryFactory,
  type DirectorySource,
  MOST_ADDRESSES,
  MOST_FOUND,
  type Registration,
} from './source.ts'
import { closed, unreachable } from './unreachable.ts'

/** A directory in the memory of this process, shared by all peers that are given it. */
export interface MemoryDirectory extends DirectoryFactory {
  /** From now on nobody reaches it, until it is told otherwise: for tests of what happens then. */
  reachable(is: boolean): void
}

/** Registrations kept; the one renewed longest ago goes first. */
const MOST_REGISTRATIONS = 10_000

interface Kept {
  readonly registration: Registration
  readonly clock: Clock
  /** Monotonic ms of that clock. */
  readonly until: number
}

/** A new directory for peers of one process: give the same one to each of them. */
export function memoryDirectory(): MemoryDirectory {
  /** By network and peer id, the one renewed last at the end. */
  const kept = new Map<string, Kept>()
  let up = true
  const factory = (context: DirectoryContext) => createMemorySource(kept, () => up, context)
  return Object.assign(factory, {
    reachable(is: boolean) {
      up = is
    },
  })
}

const NAME = 'memory'

function createMemorySource(
  kept: Map<string, Kept>,
  up: () => boolean,
  { networkName, peerId, clock }: DirectoryContext,
): DirectorySource {
  const own = `${networkName}/${peerId}`
  let last: Registration | undefined
  let over = false
  const check = (): void => {
    if (over) throw closed(NAME)
    if (!up()) throw unreachable(NAME, 'it is switched off')
  }
  const keep = (registration: Registration): void => {
    kept.delete(own)
    kept.set(own, { registration, clock, until: clock.monotonic() + registration.leaseMs })
    const oldest = kept.keys().next()
    if (kept.size > MOST_REGISTRATIONS && !oldest.done) kept.delete(oldest.value)
  }

  return {
    name: NAME,
    leased: true,
    async register(registration) {
      check()
      last = { ...registration, addresses: registration.addresses.slice(0, MOST_ADDRESSES) }
      keep(last)
    },
    async renew() {
      check()
      if (last) keep(last)
    },
    async unregister() {
      check()
      last = undefined
      kept.delete(own)
    },
    async *find(capability) {
      check()
      const found: FoundPeer[] = []
      for (const [name, one] of [...kept].reverse()) {
        if (one.clock.monotonic() >= one.until) kept.delete(name)
        else if (name !== own && name.startsWith(`${networkName}/`)) {
          const { registration } = one
          if (registration.capabilities.includes(capability)) {
            found.push({ peerId: registration.peerId, addresses: [...registration.addresses] })
          }
        }
        if (found.length >= MOST_FOUND) break
      }
      yield* found
    },
    async close() {
      over = true
    },
  }
}
