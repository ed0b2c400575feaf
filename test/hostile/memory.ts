import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes that are held outside the heap, and what is garbage there by now. */
function held(): number {
  const { external, arrayBuffers } = process.memoryUsage()
  return Math.max(external, arrayBuffers)
}

/** Bytes that are held outside the heap, garbage not counted. */
function memory(): number {
  collect()
  collect()
  return held()
}

/**
 * Gives the bytes that are held outside the heap beyond what was when this was called. A collection takes long: it is only made where
 * garbage would make the difference between less than `limit` and more.
 */
export function heldSince(): (limit: number) => number {
  const before = memory()
  return (limit) => {
    const most = held() - before
    return most < limit ? most : memory() - before
  }
}

/** Bytes that are held in the heap and outside of it. */
export function wholeMemory(): number {
  return memory() + process.memoryUsage().heapUsed
}

export const MiB = 1024 * 1024
