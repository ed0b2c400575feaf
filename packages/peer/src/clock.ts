/** A pending timer; give it back to {@link Clock.clear}. */
export interface Timer {
  readonly [timerBrand]?: never
}
declare const timerBrand: unique symbol

/**
 * Time as the runtime sees it. Injected, so that everything above `network/` runs unchanged on a virtual clock.
 */
export interface Clock {
  /** Wall clock, integer ms since the Unix epoch. Only judges `timestamp`, `expires_at` and validity dates. */
  now(): number
  /** Monotonic ms with fractions; every time-out, latency and age is measured with it. */
  monotonic(): number
  /** Calls `run` once after at least `ms`. The timer never keeps the process alive by itself. */
  after(ms: number, run: () => void): Timer
  /** Cancels a timer; harmless when it has already fired. */
  clear(timer: Timer | undefined): void
}

/** Node's timers count to 2^31 − 1 ms; beyond it they would fire at once. */
const LONGEST_MS = 2 ** 31 - 1

/** The clock of this machine. */
export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    after: (ms, run) => setTimeout(run, Math.min(ms, LONGEST_MS)).unref() as unknown as Timer,
    clear: (timer) => clearTimeout(timer as unknown as NodeJS.Timeout | undefined),
  }
}
