import { AsyncResource } from 'node:async_hooks'
import { served } from './calls/context.ts'

/** Runs work outside of whatever call happens to be served. */
export type Outside = <T>(run: () => T) => T

/**
 * What other agents send, and what listeners do with it, belongs to no handler that is running or has run here, even where that
 * handler caused the connection that it comes over. It runs in the context in which this was called.
 */
export function createOutside(): Outside {
  const resource = new AsyncResource('HermesPeer')
  // Not `exit`: that switches the hooks of the whole process off and on again, once per frame.
  return (run) => resource.runInAsyncScope(() => served.run(undefined as never, run))
}
