import type { Clock } from 'hermes-peer'
import type { SeededRandom } from '../random/seeded-random.ts'

/** Loses, repeats and delays whole frames on their way from an outbox to an inbox. */
export interface EnvelopeFaults {
  (frame: Uint8Array, deliver: (frame: Uint8Array) => void): void
  /** What has become of the frames so far. */
  readonly hits: Readonly<Record<'passed' | 'dropped' | 'duplicated' | 'reordered', number>>
}

export interface EnvelopeFaultsOptions {
  random: SeededRandom
  clock: Clock
  /** Chances in 0..1 for each frame, tried in this order; the first that holds is what happens. Default 0. */
  drop?: number
  /** Delivered at once and again 1–400 ms later. */
  duplicate?: number
  /** Delivered 1–400 ms later, so that later frames overtake it. */
  reorder?: number
}

const LATER_MS = { min: 1, max: 400 }

export function createEnvelopeFaults(options: EnvelopeFaultsOptions): EnvelopeFaults {
  const { random, clock, drop = 0, duplicate = 0, reorder = 0 } = options
  const hits = { passed: 0, dropped: 0, duplicated: 0, reordered: 0 }
  const later = (frame: Uint8Array, deliver: (frame: Uint8Array) => void) => {
    // A copy: whoever sent it may use its buffer again once the call has returned.
    const kept = new Uint8Array(frame)
    clock.after(random.between(LATER_MS.min, LATER_MS.max), () => deliver(kept))
  }
  const pass = (frame: Uint8Array, deliver: (frame: Uint8Array) => void) => {
    // One draw for each chance, whatever it is set to, so that changing one leaves the draws of the others as they were.
    const [dropped, duplicated, reordered] = [random.chance(drop), random.chance(duplicate), random.chance(reorder)]
    if (dropped) {
      hits.dropped += 1
      return
    }
    if (reordered && !duplicated) {
      hits.reordered += 1
      return later(frame, deliver)
    }
    if (duplicated) {
      hits.duplicated += 1
      later(frame, deliver)
    } else hits.passed += 1
    deliver(frame)
  }
  return Object.assign(pass, { hits })
}
