import { AsyncResource } from 'node:async_hooks'
import { HermesError } from '@hermes-peer/protocol'
import type { Clock, Timer } from 'hermes-peer'
import type { Timeline } from './timeline.ts'

/** A clock of one simulated machine. */
export interface ManualClock extends Clock {
  readonly timeline: Timeline
  /** Sets the wall clock forward or back, as NTP or a user would; timers and `monotonic` do not notice. */
  jumpWall(ms: number): void
  /** The machine is gone: its timers never fire, and new ones neither. */
  halt(): void
}

export interface ClockOptions {
  /** How far this wall clock is from the timeline's, ms. Default 0. */
  skewMs?: number
}

export function createManualClock(timeline: Timeline, options: ClockOptions): ManualClock {
  return new VirtualClock(timeline, options.skewMs ?? 0)
}

/** Node takes a longer delay, or one that is no number, for 1 ms; here it is an error, so that no test passes by it. */
const LONGEST_MS = 2 ** 31 - 1
/** As in Node: a timer never fires in the instant it was set, so a timer that sets itself cannot stop time. */
const SHORTEST_MS = 1

class VirtualClock implements ManualClock {
  readonly timeline: Timeline
  /** Bounded by the timeline's own bound. */
  readonly #waiting = new Set<() => void>()
  readonly #origin: number
  #wallOffset: number
  #halted = false

  constructor(timeline: Timeline, skewMs: number) {
    this.timeline = timeline
    this.#origin = timeline.now()
    this.#wallOffset = timeline.start + skewMs
  }

  now(): number {
    return Math.floor(this.timeline.now() + this.#wallOffset)
  }

  monotonic(): number {
    return this.timeline.now() - this.#origin
  }

  after(ms: number, run: () => void): Timer {
    if (Number.isNaN(ms) || ms > LONGEST_MS) {
      throw new HermesError('INVALID_OPTION', {
        message: `after: ${ms} ms is no delay that a timer can keep`,
        hint: `Give at most ${LONGEST_MS} ms.`,
        details: { field: 'ms' },
      })
    }
    if (this.#halted) return asTimer(() => {})
    // A timer runs in the async context it was set in; the runtime's nested calls rest on that.
    const context = new AsyncResource('HermesTimer')
    const cancel = this.timeline.schedule(Math.max(SHORTEST_MS, ms), () => {
      this.#waiting.delete(cancel)
      context.runInAsyncScope(run)
    })
    this.#waiting.add(cancel)
    return asTimer(cancel)
  }

  clear(timer: Timer | undefined): void {
    if (timer === undefined) return
    const cancel = timer as unknown as () => void
    this.#waiting.delete(cancel)
    cancel()
  }

  jumpWall(ms: number): void {
    this.#wallOffset += ms
  }

  halt(): void {
    this.#halted = true
    for (const cancel of this.#waiting) cancel()
    this.#waiting.clear()
  }
}

function asTimer(cancel: () => void): Timer {
  return cancel as unknown as Timer
}
