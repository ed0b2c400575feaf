import { decodePayload, encodePayload, HermesError, type JsonValue, toHex } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Random } from '../random.ts'

/** Names context that stays with its owner; plain data, to be sent in a call. */
export interface ContextRef {
  /** 128 random bits, lower-case hex. */
  readonly ref: string
  /** Who has it. */
  readonly agent_id: string
  /** Bytes as JSON. */
  readonly size: number
}

/** Context of this peer that others may pull: usable by whom it was granted to, and until it expires. */
export interface ContextStore {
  /** Throws `INVALID_PAYLOAD` for what is no plain data, `PAYLOAD_TOO_LARGE` over a bound, which it names. */
  offer(data: unknown, options: { agents: readonly string[]; ttlMs: number }): ContextRef
  /** That agent may pull it from now on; false when there is no such context. */
  grant(ref: string, agentId: string): boolean
  withdraw(ref: string): void
  /** Throws `CONTEXT_GONE`, the same for what never was, has expired, or is not for that agent. */
  read(ref: unknown, agentId: string): JsonValue
  /** Drops what has expired. */
  sweep(): void
  /** Bytes kept. */
  readonly bytes: number
}

export interface ContextStoreOptions {
  readonly agentId: string
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  /** Largest that an answer can carry, bytes. */
  readonly mostEach: number
}

interface Kept {
  readonly payload: Uint8Array
  readonly agents: Set<string>
  /** Monotonic ms. */
  readonly until: number
}

export function createContextStore(options: ContextStoreOptions): ContextStore {
  const { agentId, clock, random, tunables, mostEach } = options
  const kept = new Map<string, Kept>()
  let bytes = 0

  const withdraw = (ref: string): void => {
    bytes -= kept.get(ref)?.payload.length ?? 0
    kept.delete(ref)
  }
  const sweep = (): void => {
    for (const [ref, { until }] of kept) if (clock.monotonic() >= until) withdraw(ref)
  }
  const living = (ref: string): Kept | undefined => {
    const found = kept.get(ref)
    return found && clock.monotonic() < found.until ? found : undefined
  }
  const tooLarge = (message: string, hint: string, size: number, limit: number): HermesError =>
    new HermesError('PAYLOAD_TOO_LARGE', { message, hint, details: { size, limit } })

  return {
    offer(data, { agents, ttlMs }) {
      // A copy, so that what is pulled is what was offered.
      const payload = encodePayload('application/json', data as never)
      checkTellable(data)
      const size = payload.length
      if (size > mostEach) {
        throw tooLarge(
          `the context has ${size} bytes, the limit is ${mostEach}: it must fit into one answer`,
          'Offer it in parts, each under its own reference.',
          size,
          mostEach,
        )
      }
      sweep()
      if (bytes + size > tunables.contextBytes || kept.size >= tunables.contextRefs) {
        throw tooLarge(
          `${kept.size} contexts of ${bytes} bytes are offered; the bounds are ${tunables.contextRefs} and ${tunables.contextBytes}`,
          'Withdraw what is no longer needed, or offer it for a shorter time.',
          bytes + size,
          tunables.contextBytes,
        )
      }
      const ref = toHex(random.bytes(16))
      kept.set(ref, { payload, agents: new Set(agents), until: clock.monotonic() + ttlMs })
      bytes += size
      return { ref, agent_id: agentId, size }
    },
    grant(ref, other) {
      const found = living(ref)
      if (!found) return false
      // Bounded: whoever is granted was reached over a link.
      found.agents.add(other)
      return true
    },
    withdraw,
    read(ref, other) {
      const found = typeof ref === 'string' ? living(ref) : undefined
      if (!found?.agents.has(other)) throw new HermesError('CONTEXT_GONE')
      return decodePayload('application/json', found.payload)
    },
    sweep,
    get bytes() {
      return bytes
    },
  }
}

/** It is pulled inside of an answer, which takes levels and keys of what a payload may have. Throws `INVALID_PAYLOAD`. */
function checkTellable(data: unknown): void {
  try {
    encodePayload('application/json', { output: { data }, status: 'completed' } as never)
  } catch (error) {
    const { message } = HermesError.from(error)
    throw HermesError.from(error).with({
      message: `the context does not fit into the answer that carries it: ${message}`,
    })
  }
}

/** Whether remote data has the form of a reference. */
export function isContextRef(value: unknown): value is ContextRef {
  if (typeof value !== 'object' || value === null) return false
  const { ref, agent_id, size } = value as Partial<Record<keyof ContextRef, unknown>>
  return typeof ref === 'string' && /^[0-9a-f]{32}$/.test(ref) && typeof agent_id === 'string' && Number.isInteger(size)
}
