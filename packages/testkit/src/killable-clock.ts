import type { Clock, Timer } from 'hermes-peer'

/** The clock of one life of a peer: after `kill` none of its timers fires any more, as nothing of a dead process runs. */
export interface KillableClock extends Clock {
  kill(): void
}

export function killable(clock: Clock): KillableClock {
  let alive = true
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, run) => clock.after(ms, () => alive && run()),
    clear: (timer: Timer | undefined) => clock.clear(timer),
    kill() {
      alive = false
    },
  }
}
