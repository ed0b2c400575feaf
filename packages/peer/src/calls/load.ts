import type { Clock } from '../clock.ts'
import type { Places } from './places.ts'

/** Running and waiting work, and the fullest capability's share of its places, 0..1. */
export interface Load {
  readonly running: number
  readonly waiting: number
  /**
   * The mean of the last `spanMs`: what is told once in a while of something that changes with each call would be chance, and chance
   * would drive the calls of everybody who hears it.
   */
  readonly fullness: number
}

/** Places of one capability, and how many there are. */
export interface Measurable {
  readonly places: Pick<Places, 'running' | 'waiting' | 'busyMs'>
  readonly contract: { readonly constraints: { readonly maxConcurrency?: number } }
}

export interface LoadMeterOptions {
  readonly clock: Clock
  /** The share's whole where a capability sets no bound of its own. */
  readonly mostOfAll: number
  /** How often it is read, about. */
  readonly spanMs: number
}

/** Reads the load of everything that is provided, as it was since it was read before. */
export type LoadMeter = (all: Iterable<Measurable>) => Load

export function createLoadMeter({ clock, mostOfAll, spanMs }: LoadMeterOptions): LoadMeter {
  const before = new WeakMap<Measurable['places'], { at: number; busyMs: number; mean: number }>()

  const meanOf = (places: Measurable['places']): number => {
    const at = clock.monotonic()
    const { busyMs } = places
    const last = before.get(places)
    const passed = last ? at - last.at : 0
    if (last && passed <= 0) return last.mean
    // Read again soon, the little that has passed since counts for little.
    const weight = Math.min(1, passed / spanMs)
    const mean = last ? weight * ((busyMs - last.busyMs) / passed) + (1 - weight) * last.mean : places.running
    before.set(places, { at, busyMs, mean })
    return mean
  }

  return (all) => {
    let [running, waiting, fullness] = [0, 0, 0]
    for (const { places, contract } of all) {
      running += places.running
      waiting += places.waiting
      fullness = Math.max(fullness, meanOf(places) / (contract.constraints.maxConcurrency ?? mostOfAll))
    }
    return { running, waiting, fullness }
  }
}
