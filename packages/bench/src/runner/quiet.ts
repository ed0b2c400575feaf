import { setTimeout as sleep } from 'node:timers/promises'
import { readMachine } from '../measure/cpu.ts'

/** How long one timed part waits for the machine, and all of them together, ms. */
const WAIT_MS = 1_000
const WAIT_ALL_MS = 30_000
/** Below this share of busy cores the machine counts as quiet. */
const BUSY = 0.1
const LOOK_MS = 200

/** Makes a function that waits, for a bounded time, until the rest of the machine is quiet. */
export function createQuiet(): () => Promise<void> {
  let left = WAIT_ALL_MS
  return async () => {
    if (process.platform !== 'linux') return
    for (let waited = 0; waited < WAIT_MS && left > 0; waited += LOOK_MS, left -= LOOK_MS) {
      const before = readMachine()
      await sleep(LOOK_MS)
      const now = readMachine()
      if ((now.busy - before.busy) / Math.max(1, now.all - before.all) < BUSY) return
    }
  }
}
