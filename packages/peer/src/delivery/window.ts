import type { Clock, Timer } from '../clock.ts'

export interface WindowOptions<T> {
  readonly clock: Clock
  /** Envelopes and bytes held behind a gap; over either the gap is given up at once. */
  readonly items: number
  readonly bytes: number
  /** A gap is given up after this, ms. */
  readonly gapMs: number
  /** The first sequence expected. */
  readonly start: number
  /** Called in sequence order. */
  admit(item: T): void
  /** `count` sequences from `sequence` on were given up. */
  gap(sequence: number, count: number, reason: 'timeout' | 'overflow' | 'reconnect'): void
}

/** `admitted`: `admit` was called. `held`: waits behind a gap. `stale`: its place is used or was given up. */
export type Offer = 'admitted' | 'held' | 'stale'

/** Admits envelopes of one sender in the order of their sequence. */
export interface SequenceWindow<T> {
  offer(sequence: number, bytes: number, ordered: boolean, item: T): Offer
  /** Uses a place up without admitting anything: a refusal, or a duplicate that was answered already. */
  skip(sequence: number): void
  /** What is held at a place, if anything. */
  heldAt(sequence: number): T | undefined
  /** Nothing below `sequence` can come any more. */
  advance(sequence: number): void
  /** Lowest sequence still awaited. */
  readonly next: number
  readonly held: number
  close(): void
}

export function createWindow<T>(options: WindowOptions<T>): SequenceWindow<T> {
  return new Window(options)
}

interface Held<T> {
  item: T
  bytes: number
  /** Monotonic ms. */
  at: number
}

class Window<T> implements SequenceWindow<T> {
  readonly #options: WindowOptions<T>
  #next: number
  /** Places above `next`: held items, or undefined for places used up early (unordered, refused). At most `items` ahead. */
  readonly #ahead = new Map<number, Held<T> | undefined>()
  #held = 0
  #bytes = 0
  #timer: Timer | undefined
  #closed = false

  constructor(options: WindowOptions<T>) {
    this.#options = options
    this.#next = options.start
  }

  get next(): number {
    return this.#next
  }

  get held(): number {
    return this.#held
  }

  offer(sequence: number, bytes: number, ordered: boolean, item: T): Offer {
    if (sequence < this.#next || this.#ahead.has(sequence)) return 'stale'
    const { items, bytes: mostBytes, clock } = this.#options
    if (sequence - this.#next > items) this.#giveUpBelow(sequence, 'overflow')
    if (!ordered) {
      // First itself, then what waited behind it.
      this.#options.admit(item)
      this.skip(sequence)
      return 'admitted'
    }
    if (sequence !== this.#next && (this.#held >= items || this.#bytes + bytes > mostBytes)) {
      this.#giveUpBelow(sequence, 'overflow')
    }
    if (sequence === this.#next) {
      this.#next++
      this.#options.admit(item)
      this.#release()
      return 'admitted'
    }
    this.#ahead.set(sequence, { item, bytes, at: clock.monotonic() })
    this.#held++
    this.#bytes += bytes
    this.#arm()
    return 'held'
  }

  skip(sequence: number): void {
    if (sequence < this.#next || this.#ahead.has(sequence)) return
    if (sequence - this.#next > this.#options.items) this.#giveUpBelow(sequence, 'overflow')
    if (sequence === this.#next) {
      this.#next++
      this.#release()
    } else {
      this.#ahead.set(sequence, undefined)
    }
  }

  heldAt(sequence: number): T | undefined {
    return this.#ahead.get(sequence)?.item
  }

  advance(sequence: number): void {
    if (sequence > this.#next) this.#giveUpBelow(sequence, 'reconnect')
  }

  close(): void {
    this.#closed = true
    this.#options.clock.clear(this.#timer)
    this.#ahead.clear()
  }

  /** Moves on to `sequence`, releasing in order what is held below it and counting what is missing. */
  #giveUpBelow(sequence: number, reason: 'timeout' | 'overflow' | 'reconnect'): void {
    while (this.#next < sequence) {
      const first = this.#lowest()
      const to = Math.min(first ?? sequence, sequence)
      if (to > this.#next) this.#options.gap(this.#next, to - this.#next, reason)
      this.#next = Math.max(this.#next, to)
      this.#release()
    }
  }

  #lowest(): number | undefined {
    let lowest: number | undefined
    for (const sequence of this.#ahead.keys()) if (lowest === undefined || sequence < lowest) lowest = sequence
    return lowest
  }

  #release(): void {
    while (!this.#closed && this.#ahead.has(this.#next)) {
      const held = this.#ahead.get(this.#next)
      this.#ahead.delete(this.#next)
      this.#next++
      if (!held) continue
      this.#held--
      this.#bytes -= held.bytes
      this.#options.admit(held.item)
    }
    this.#arm()
  }

  /** One timer, for the oldest thing held: a gap is as old as what first waited behind it. */
  #arm(): void {
    const { clock, gapMs } = this.#options
    clock.clear(this.#timer)
    this.#timer = undefined
    if (this.#held === 0 || this.#closed) return
    let oldest = Number.POSITIVE_INFINITY
    for (const held of this.#ahead.values()) if (held && held.at < oldest) oldest = held.at
    this.#timer = clock.after(Math.max(0, oldest + gapMs - clock.monotonic()), () => {
      const lowest = this.#lowestHeld()
      if (lowest !== undefined) this.#giveUpBelow(lowest, 'timeout')
      this.#arm()
    })
  }

  #lowestHeld(): number | undefined {
    let lowest: number | undefined
    for (const [sequence, held] of this.#ahead)
      if (held && (lowest === undefined || sequence < lowest)) lowest = sequence
    return lowest
  }
}
