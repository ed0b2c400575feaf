import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes that are held outside the heap, garbage not counted. */
export function memory(): number {
  collect()
  collect()
  const { external, arrayBuffers } = process.memoryUsage()
  return Math.max(external, arrayBuffers)
}

/** Bytes that are held in the heap and outside of it. */
export function wholeMemory(): number {
  return memory() + process.memoryUsage().heapUsed
}

export const MiB = 1024 * 1024
