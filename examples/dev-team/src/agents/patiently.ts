import { isHermesError } from 'hermes-peer'

/** Times that a call is made again after the runtime gave up on it for want of an agent that can be reached and is free. */
const MAX_REPEATS = 5
/** Before it is made again, ms; grows with each time. */
const PAUSE_MS = 250
const REPEATABLE: ReadonlySet<string> = new Set([
  'BUSY',
  'DIRECTORY_UNREACHABLE',
  'DRAINING',
  'NO_CANDIDATE',
  'PEER_UNREACHABLE',
  'QUEUE_FULL',
  'RETRIES_EXHAUSTED',
  // Once a piece of it was read, the runtime begins a stream nowhere else: only its reader knows what to make of both parts.
  'STREAM_BROKEN',
])

/**
 * Makes a call of effects `none`, and makes it again while nobody can take it: on a busy machine, or just after an agent was
 * lost, a moment helps. Rejects with the last error, or at once for any that waiting does not change.
 */
export async function patiently<T>(call: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  for (let repeats = 0; ; repeats++) {
    try {
      return await call()
    } catch (error) {
      signal?.throwIfAborted()
      if (!isHermesError(error) || !REPEATABLE.has(error.code) || error.declared || repeats >= MAX_REPEATS) throw error
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * (repeats + 1)))
    }
  }
}
