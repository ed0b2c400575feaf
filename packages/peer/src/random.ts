import { randomFillSync } from 'node:crypto'

/** Randomness as the runtime sees it. Injected, so that a simulation can replay a run from its seed. */
export interface Random {
  /** `length` fresh bytes; the system source is fit for nonces and ids. */
  bytes(length: number): Uint8Array
  /** A number in [0, 1); for jitter and tie-breaking, never for secrets. */
  next(): number
}

/** The operating system's random source. */
export function systemRandom(): Random {
  return {
    bytes: (length) => randomFillSync(new Uint8Array(length)),
    next: () => Math.random(),
  }
}
