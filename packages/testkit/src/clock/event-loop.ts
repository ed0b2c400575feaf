import { AsyncResource } from 'node:async_hooks'
// From the module, not the global: a test that fakes the global timers must not stop virtual time.
import { setImmediate } from 'node:timers'
import { HermesError } from '@hermes-peer/protocol'

/** Turns without coming to rest after which the code under test is taken to loop by `setImmediate` for ever. */
const MAX_TURNS = 100_000

/**
 * Immediates that wait and belong to a loop of this file. Node has one queue of them for the whole process, so this count
 * is the process's too: without it, two worlds that are moved at the same time would take each other for work to wait for.
 */
const own = { waiting: 0 }

/**
 * Calls `step` each time that no microtask, `nextTick` or immediate is left to run, until it says `done`.
 * Outside of any async context but the one this was created in, as an event loop would. Rejects with what `step` throws.
 */
export interface EventLoop {
  run(step: () => 'again' | 'done'): Promise<void>
}

export function createEventLoop(): EventLoop {
  const root = new AsyncResource('HermesTimeline')
  return {
    run: (step) =>
      new Promise((resolve, reject) => {
        let restless = 0
        // Node has run all microtasks and ticks before it calls an immediate, so only immediates are left to look for.
        const turn = () => {
          own.waiting -= 1
          try {
            if (immediatesAreWaiting()) {
              restless += 1
              if (restless > MAX_TURNS) throw neverRests()
            } else {
              restless = 0
              if (step() === 'done') return resolve()
            }
            next()
          } catch (error) {
            reject(error)
          }
        }
        const next = () => {
          own.waiting += 1
          setImmediate(turn)
        }
        root.runInAsyncScope(next)
      }),
  }
}

function immediatesAreWaiting(): boolean {
  let count = 0
  for (const resource of process.getActiveResourcesInfo()) if (resource === 'Immediate') count += 1
  return count > own.waiting
}

function neverRests(): HermesError {
  return new HermesError('TIMEOUT', {
    message: `timeline: no rest after ${MAX_TURNS} turns of the event loop`,
    hint: 'Look for code that calls setImmediate for ever.',
  })
}
