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
  // Ids take a few bytes each: one call into the system for many of them. Each byte is handed out once.
  const pool = new Uint8Array(POOL_BYTES)
  let used = POOL_BYTES
  return {
    bytes(length) {
      if (length > POOL_BYTES / 4) return randomFillSync(new Uint8Array(length))
      if (used + length > POOL_BYTES) {
        randomFillSync(pool)
        used = 0
      }
      const bytes = pool.slice(used, used + length)
      pool.fill(0, used, used + length)
      used += length
      return bytes
    },
    next: () => Math.random(),
  }
}

const POOL_BYTES = 4096
