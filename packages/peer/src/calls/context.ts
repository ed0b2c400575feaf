import { AsyncLocalStorage } from 'node:async_hooks'
import type { Priority } from '@hermes-peer/protocol'

/** What calls made inside a handler inherit. */
export interface Served {
  readonly traceId: string
  /** Empty outside of an interaction. */
  readonly correlationId: string
  /** Undefined outside of a handler. */
  readonly priority: Priority | undefined
  /** Calls that wait for this one, its own step last. */
  readonly path: readonly string[]
  /** Monotonic ms. */
  readonly deadline: number
  readonly signal: AbortSignal | undefined
}

/** One per peer: a process may host many, and a call of one inside a handler of another is nested work all the same. */
export const served = new AsyncLocalStorage<Served>()
