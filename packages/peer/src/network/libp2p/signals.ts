import { setMaxListeners } from 'node:events'

/** A signal of its own that ends with its parents. */
export interface Deadline {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
  /** Gives back the timer and the listeners: a long-lived parent would keep them, one per call. */
  clear(): void
}

/** Ends with the first of its parents (and that one's reason), or after `ms` with a `TimeoutError`. */
export function deadline(options: { parents: readonly AbortSignal[]; ms?: number }): Deadline {
  const controller = new AbortController()
  // One query of the DHT listens once per request; that is no leak, as the signal goes with the query.
  setMaxListeners(Number.POSITIVE_INFINITY, controller.signal)
  const follow = options.parents.map((parent) => {
    const run = () => controller.abort(parent.reason)
    if (parent.aborted) run()
    else {
      // Any number of searches at a time follow the life of one network, or the signal of one caller.
      setMaxListeners(0, parent)
      parent.addEventListener('abort', run, { once: true })
    }
    return { parent, run }
  })
  const timer =
    options.ms === undefined
      ? undefined
      : setTimeout(() => controller.abort(new DOMException(`not done in ${options.ms} ms`, 'TimeoutError')), options.ms)
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    clear: () => {
      clearTimeout(timer)
      for (const { parent, run } of follow) parent.removeEventListener('abort', run)
    },
  }
}

/** The promise, or a rejection with the signal's reason as soon as it ends; a later rejection of the promise is dropped. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    const done = () => signal.removeEventListener('abort', onAbort)
    promise.then(
      (value) => {
        done()
        resolve(value)
      },
      (error) => {
        done()
        reject(error)
      },
    )
    if (signal.aborted) onAbort()
    else {
      setMaxListeners(0, signal)
      signal.addEventListener('abort', onAbort, { once: true })
    }
  })
}
