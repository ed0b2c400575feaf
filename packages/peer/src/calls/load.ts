import type { Provided } from './job.ts'

/** Running and waiting work, and the fullest capability's share of its places, 0..1. */
export interface Load {
  readonly running: number
  readonly waiting: number
  readonly fullness: number
}

/** `mostOfAll` is the share's whole where a capability sets no bound of its own. */
export function loadOf(all: Iterable<Provided>, mostOfAll: number): Load {
  let [running, waiting, fullness] = [0, 0, 0]
  for (const { places, contract } of all) {
    running += places.running
    waiting += places.waiting
    fullness = Math.max(fullness, places.running / (contract.constraints.maxConcurrency ?? mostOfAll))
  }
  return { running, waiting, fullness }
}
