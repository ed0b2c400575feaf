import type { Clock } from '../../src/clock.ts'
import type { Offer } from '../../src/delivery/window.ts'

/** What the window is given to admit. */
export interface Item {
  readonly id: number
  readonly sequence: number
  readonly bytes: number
  readonly ordered: boolean
}

export interface Bounds {
  readonly items: number
  readonly bytes: number
  readonly gapMs: number
}

type Reason = 'timeout' | 'overflow' | 'reconnect'
type Act = { kind: 'offer' | 'skip' | 'advance'; sequence: number; item?: Item }

/**
 * Follows a window by what it does and says whether it may. It does not predict: it knows which place is awaited, what
 * waits and since when, and throws at the first step that breaks a promise.
 */
export class WindowJudge {
  readonly #clock: Clock
  readonly #bounds: Bounds
  #next: number
  /** Places beyond `#next`: what waits there, or undefined where the place is used up. */
  readonly #ahead = new Map<number, { item: Item; since: number } | undefined>()
  readonly #admitted = new Set<number>()
  #act: Act | undefined
  /** Whether the act in hand goes over a bound, so that a gap may be given up at once. */
  #over = false
  readonly counts = { admitted: 0, held: 0, stale: 0, timeout: 0, overflow: 0, reconnect: 0 }

  constructor(clock: Clock, bounds: Bounds, start: number) {
    this.#clock = clock
    this.#bounds = bounds
    this.#next = start
  }

  get next(): number {
    return this.#next
  }

  admit(item: Item): void {
    if (this.#admitted.has(item.id)) throw new Error(`${item.sequence} is admitted twice`)
    this.#admitted.add(item.id)
    this.counts.admitted++
    if (item === this.#act?.item && !item.ordered) {
      this.#use(item.sequence)
      return
    }
    if (item.sequence !== this.#next) throw new Error(`${item.sequence} is admitted where ${this.#next} is awaited`)
    if (item !== this.#act?.item && this.#ahead.get(item.sequence)?.item !== item) throw new Error('nobody offered it')
    this.#use(item.sequence)
  }

  gap(sequence: number, count: number, reason: Reason): void {
    this.counts[reason]++
    if (sequence !== this.#next) throw new Error(`a gap at ${sequence} is given up where ${this.#next} is awaited`)
    if (count < 1) throw new Error('an empty gap')
    for (let missing = sequence; missing < sequence + count; missing++) {
      if (this.#ahead.has(missing)) throw new Error(`${missing} is not missing`)
    }
    if (reason === 'reconnect' && this.#act?.kind !== 'advance') throw new Error('nobody reconnected')
    if (reason === 'overflow' && !this.#over) throw new Error('no bound was passed')
    if (reason === 'timeout' && this.#longestWait() < this.#bounds.gapMs) throw new Error('given up too early')
    this.#next += count
    this.#pass()
  }

  /** Runs one act of the owner of the window, and judges what it says of an offer. */
  during(act: Act, run: () => Offer | undefined): void {
    const { sequence, item } = act
    const occupied = sequence < this.#next || this.#ahead.has(sequence)
    this.#act = act
    this.#over = act.kind !== 'advance' && !occupied && this.#isOver(sequence, item)
    const before = this.counts.admitted
    if (act.kind === 'skip' && !occupied && !this.#over) this.#use(sequence)
    const said = run()
    if (item !== undefined) this.#judgeOffer(item, said as Offer, occupied, this.counts.admitted > before)
    else if (act.kind === 'skip' && !occupied && this.#over) this.#use(sequence)
    if (act.kind === 'advance' && this.#next < sequence) throw new Error(`${this.#next} is awaited after ${sequence}`)
    this.#act = undefined
  }

  /** What must be true whenever nothing happens. */
  settled(seen: { next: number; held: number }): void {
    const waiting = [...this.#ahead.values()].filter((one) => one !== undefined)
    if (seen.next !== this.#next) throw new Error(`awaits ${seen.next}, not ${this.#next}`)
    if (seen.held !== waiting.length) throw new Error(`holds ${seen.held}, not ${waiting.length}`)
    if (waiting.length > this.#bounds.items) throw new Error(`holds ${waiting.length}`)
    if (waiting.reduce((sum, { item }) => sum + item.bytes, 0) > this.#bounds.bytes)
      throw new Error('holds too many bytes')
    // Each gap is given up by a timer of its own, which fires a millisecond after it was set at the earliest.
    if (this.#longestWait() > this.#bounds.gapMs + this.#ahead.size) throw new Error('waits for ever')
  }

  #judgeOffer(item: Item, said: Offer, occupied: boolean, admittedNow: boolean): void {
    this.counts[said]++
    if (said === 'admitted') this.counts.admitted--
    if ((said === 'stale') !== occupied) throw new Error(`${item.sequence} is called ${said}`)
    if ((said === 'admitted') !== this.#admitted.has(item.id)) throw new Error(`${item.sequence} is said to be ${said}`)
    if (said === 'stale' && admittedNow) throw new Error('something is admitted by what is stale')
    if (said !== 'held') return
    if (!item.ordered) throw new Error('what is not ordered must not wait')
    if (item.sequence - this.#next > this.#bounds.items) throw new Error('held too far ahead')
    this.#ahead.set(item.sequence, { item, since: this.#clock.monotonic() })
  }

  #isOver(sequence: number, item: Item | undefined): boolean {
    if (sequence - this.#next > this.#bounds.items) return true
    if (item?.ordered !== true || sequence === this.#next) return false
    const waiting = [...this.#ahead.values()].filter((one) => one !== undefined)
    const bytes = waiting.reduce((sum, one) => sum + one.item.bytes, item.bytes)
    return waiting.length >= this.#bounds.items || bytes > this.#bounds.bytes
  }

  #longestWait(): number {
    const now = this.#clock.monotonic()
    return Math.max(0, ...[...this.#ahead.values()].map((one) => (one === undefined ? 0 : now - one.since)))
  }

  #use(sequence: number): void {
    if (sequence > this.#next) {
      this.#ahead.set(sequence, undefined)
      return
    }
    this.#ahead.delete(sequence)
    if (sequence === this.#next) this.#next++
    this.#pass()
  }

  /** Places that were used up early are passed as soon as they are reached. */
  #pass(): void {
    while (this.#ahead.has(this.#next) && this.#ahead.get(this.#next) === undefined) {
      this.#ahead.delete(this.#next)
      this.#next++
    }
  }
}
