import type { Clock } from '../clock.ts'
import type { Identity } from './identities.ts'
import type { Notes } from './notes.ts'

/** The highest serial of each agent's instance certificates: an older one is refused once the overlap is over. */
export interface Serials {
  load(notes: Notes): Promise<void>
  /** Why that instance may not speak for the agent any more. */
  objection(identity: Identity): string | undefined
  /** It has proven itself. */
  note(identity: Identity): void
}

interface Highest {
  /** Fingerprint of the agent key: with another one the serials begin anew. */
  readonly key: string
  readonly serial: number
  /** Wall clock, ms: since when that certificate holds. */
  readonly since: number
}

/** Agents whose serials are kept, each with a rotated key; none is forgotten, as its old key would be welcome again. */
const MOST = 10_000
const PREFIX = 'instance:'

export function createSerials({ clock, overlapMs }: { clock: Clock; overlapMs: number }): Serials {
  const highest = new Map<string, Highest>()
  let notes: Notes | undefined
  const known = ({ agentId, agentKey }: Identity): Highest | undefined => {
    const found = highest.get(agentId)
    return found?.key === agentKey.fingerprint ? found : undefined
  }
  return {
    async load(from) {
      notes = from
      for await (const [key, value] of from.entries(PREFIX)) {
        if (isHighest(value) && highest.size < MOST) highest.set(key.slice(PREFIX.length), value)
      }
    },
    objection(identity) {
      const found = known(identity)
      const serial = identity.instance?.serial ?? 0
      if (found) {
        if (serial >= found.serial || clock.now() <= found.since + overlapMs) return undefined
        return `${identity.agentId} came with certificate ${serial} of its instance, ${found.serial} is known: key ${identity.signer.fingerprint} has been replaced`
      }
      return serial > 0 && highest.size >= MOST ? `the serials of ${MOST} agents are kept already` : undefined
    },
    note(identity) {
      const { instance, agentId, agentKey } = identity
      if (!instance || instance.serial <= (known(identity)?.serial ?? 0)) return
      const entry = { key: agentKey.fingerprint, serial: instance.serial, since: instance.not_before }
      highest.set(agentId, entry)
      notes?.keep(`${PREFIX}${agentId}`, entry)
    },
  }
}

function isHighest(value: unknown): value is Highest {
  const { key, serial, since } = (value ?? {}) as Partial<Highest>
  return typeof key === 'string' && Number.isSafeInteger(serial) && Number.isSafeInteger(since)
}
