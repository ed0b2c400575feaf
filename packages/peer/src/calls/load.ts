import type { Provided } from './job.ts'

/** Running and waiting work, and the fullest capability's share of its places, 0..1. */
export interface Load {
  running: number
  waiting: number
  fullness: number
}

export function loadOf(all: Iterable<Provided>, waitingFor: (provided: Provided) => number, perNode: number): Load {
  const load: Load = { running: 0, waiting: 0, fullness: 0 }
  for (const provided of all) {
    const most = provided.contract.constraints.maxConcurrency ?? perNode
    load.running += provided.running
    load.waiting += waitingFor(provided)
    load.fullness = Math.max(load.fullness, provided.running / most)
  }
  return load
}
