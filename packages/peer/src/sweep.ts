import type { Clock, Timer } from './clock.ts'

/** Has all of them swept again and again, this far apart; returns the way to end it. */
export function sweepEvery(clock: Clock, everyMs: number, swept: readonly { sweep(): void }[]): () => void {
  let timer: Timer
  const arm = (): void => {
    timer = clock.after(everyMs, () => {
      for (const stage of swept) stage.sweep()
      arm()
    })
  }
  arm()
  return () => clock.clear(timer)
}
