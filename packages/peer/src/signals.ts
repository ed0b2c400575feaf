import { setMaxListeners } from 'node:events'
import { HermesError } from '@hermes-peer/protocol'

/**
 * Calls `run` when the signal fires, at once when it has; returns the way to stop listening. One signal may serve any number of
 * calls at a time, so Node's warning for more than ten listeners is switched off for it.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) {
    run()
    return () => undefined
  }
  setMaxListeners(0, signal)
  signal.addEventListener('abort', run, { once: true })
  return () => signal.removeEventListener('abort', run)
}

/** The promise, or the signal's reason if that comes first; leaves no listener behind. */
export function withSignal<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  return new Promise<T>((resolve, reject) => {
    const stop = onAbort(signal, () => reject(HermesError.from(signal.reason, 'CANCELLED')))
    promise.then(resolve, reject).finally(stop)
  })
}

/** Waits that one event ends, now or later. Unlike `Promise.race` with a promise that lives on, nothing of a wait is kept once it is over. */
export interface Interruptible {
  /** As the promise; rejects with the reason once interrupted. */
  wait<T>(promise: Promise<T>): Promise<T>
  interrupt(reason: unknown): void
}

export function interruptible(): Interruptible {
  let interrupted: { reason: unknown } | undefined
  let end: ((reason: unknown) => void) | undefined
  return {
    wait: (promise) =>
      new Promise((resolve, reject) => {
        end = reject
        promise.then(resolve, reject)
        if (interrupted) reject(interrupted.reason)
      }),
    interrupt(reason) {
      interrupted ??= { reason }
      end?.(reason)
    },
  }
}
