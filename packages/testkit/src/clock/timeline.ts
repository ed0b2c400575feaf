import { HermesError } from '@hermes-peer/protocol'
import { type Duration, toMs } from './duration.ts'
import { createEventLoop } from './event-loop.ts'
import { type ClockOptions, createManualClock, type ManualClock } from './manual-clock.ts'
import { createTimerHeap, type HeapEntry } from './timer-heap.ts'

/** The time of one simulated world. It stands still except inside `advance` and `runUntil`. */
export interface Timeline {
  /** Virtual ms since the timeline began. */
  now(): number
  /** Wall-clock ms since the Unix epoch at the beginning. */
  readonly start: number
  /** Timers that wait. */
  readonly pending: number
  /** A clock of one machine in this world. */
  clock(options?: ClockOptions): ManualClock
  /**
   * Calls `run` after `ms`, outside of any caller's async context; returns the way to cancel it. Finer than `Clock.after`
   * (1/1024 ms), for simulated machinery.
   */
  schedule(ms: number, run: () => void): () => void
  /** Resolves after a time that only passes when the timeline is moved; rejects with the signal's reason. */
  sleep(time: Duration, options?: { signal?: AbortSignal }): Promise<void>
  /**
   * Lets time pass: fires what is due in the order of (time, creation), and after each lets all microtasks, ticks and
   * immediates run. Rejects with what a timer throws. Work of the real world (files, sockets, threads) is not waited for.
   */
  advance(time: Duration): Promise<void>
  /**
   * Lets time pass until the promise is settled (and passes on its value or reason) or the condition holds.
   * `limitMs` (default 10 minutes of virtual time): then rejects with `TIMEOUT`; also when nothing is left that could happen.
   */
  runUntil<T>(goal: PromiseLike<T>, options?: { limitMs?: number }): Promise<T>
  runUntil(goal: () => boolean, options?: { limitMs?: number }): Promise<void>
}

export interface TimelineOptions {
  /** Wall-clock ms since the Unix epoch at the beginning. Default 2026-01-01T00:00:00Z. */
  start?: number
}

export function createTimeline(options: TimelineOptions = {}): Timeline {
  return new VirtualTimeline(options.start ?? Date.UTC(2026, 0, 1))
}

/** A clock with a timeline of its own, to test one part alone: `clock.timeline.advance('5s')`. */
export function manualClock(options: ClockOptions & TimelineOptions = {}): ManualClock {
  return createTimeline(options).clock(options)
}

/** Times are whole multiples of 1/1024 ms: sums and differences stay exact, so nothing fires a rounding error too early. */
const TICKS_PER_MS = 1024
const DEFAULT_LIMIT_MS = 600_000
/** Bound of the timers that wait; more than that is a leak in the code under test. */
const MAX_PENDING = 1_000_000

interface Entry extends HeapEntry {
  readonly run: () => void
}

class VirtualTimeline implements Timeline {
  readonly start: number
  readonly #heap = createTimerHeap<Entry>()
  readonly #loop = createEventLoop()
  #now = 0
  #order = 0
  #running = false

  constructor(start: number) {
    this.start = start
  }

  get pending(): number {
    return this.#heap.size
  }

  now(): number {
    return this.#now
  }

  clock(options: ClockOptions = {}): ManualClock {
    return createManualClock(this, options)
  }

  schedule(ms: number, run: () => void): () => void {
    if (this.#heap.size >= MAX_PENDING) {
      throw new HermesError('QUEUE_FULL', { message: `timeline: more than ${MAX_PENDING} timers wait` })
    }
    const ticks = Math.max(1, Math.ceil(ms * TICKS_PER_MS))
    const entry: Entry = { at: this.#now + ticks / TICKS_PER_MS, order: this.#order++, index: -1, run }
    this.#heap.push(entry)
    return () => void this.#heap.remove(entry)
  }

  sleep(time: Duration, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const onAbort = () => {
        cancel()
        reject(signal?.reason)
      }
      const cancel = this.schedule(toMs(time, 'sleep'), () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      })
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  async advance(time: Duration): Promise<void> {
    const end = this.#now + Math.ceil(toMs(time, 'advance') * TICKS_PER_MS) / TICKS_PER_MS
    await this.#run(() => this.#fireNext(end))
    this.#now = end
  }

  async runUntil<T>(goal: PromiseLike<T> | (() => boolean), options: { limitMs?: number } = {}): Promise<T> {
    const limitMs = options.limitMs ?? DEFAULT_LIMIT_MS
    const end = this.#now + limitMs
    const outcome = typeof goal === 'function' ? condition<T>(goal) : settlement(goal)
    let reached = false
    await this.#run(() => {
      reached = outcome.reached()
      return !reached && this.#fireNext(end)
    })
    if (reached) return outcome.value()
    throw new HermesError('TIMEOUT', {
      message: `timeline: not reached within ${limitMs} ms of virtual time${this.#heap.size === 0 ? '; nothing is left that could happen' : ''}`,
      hint: 'Look for what it waits for: work of the real world (files, sockets, threads) is not waited for.',
    })
  }

  async #run(step: () => boolean): Promise<void> {
    if (this.#running) {
      throw new HermesError('INVALID_OPTION', {
        message: 'timeline: it is being moved already',
        hint: 'Await the earlier advance() or runUntil() first; inside of handlers use sleep().',
      })
    }
    this.#running = true
    try {
      await this.#loop.run(() => (step() ? 'again' : 'done'))
    } finally {
      this.#running = false
    }
  }

  #fireNext(end: number): boolean {
    const next = this.#heap.peek()
    if (!next || next.at > end) return false
    this.#heap.pop()
    this.#now = next.at
    next.run()
    return true
  }
}

interface Outcome<T> {
  reached(): boolean
  value(): T | PromiseLike<T>
}

function condition<T>(holds: () => boolean): Outcome<T> {
  return { reached: holds, value: () => undefined as T }
}

function settlement<T>(promise: PromiseLike<T>): Outcome<T> {
  let settled = false
  const mark = () => {
    settled = true
  }
  promise.then(mark, mark)
  return { reached: () => settled, value: () => promise }
}
