import type { Timeline } from '../clock/timeline.ts'

/** What travels: bytes of a channel or of gossip, or a sign between the two ends of a channel. */
export interface Frame {
  /** Bytes of payload; 0 for a sign. */
  readonly size: number
  /**
   * Called at the other end, with how many of the bytes have made it. May return what is to be done
   * once everything that arrived in the same instant is in.
   */
  arrive(received: number): (() => void) | undefined
}

/** A frame that carries no payload. */
export function sign(arrive: () => void): Frame {
  return {
    size: 0,
    arrive: () => {
      arrive()
      return undefined
    },
  }
}

export type HoldReason = 'partition' | 'stall'

/** One direction of a connection: everything arrives, once, in the order it was sent, unless the connection ends. */
export interface Lane {
  /** Payload bytes on the way. */
  readonly queuedBytes: number
  push(frame: Frame): void
  /** Nothing arrives any more until it is released for each reason; nothing is lost. */
  hold(reason: HoldReason): void
  release(reason: HoldReason): void
  /** What is on the way is lost. */
  clear(): void
  /** Nothing arrives any more, ever. */
  close(): void
}

/** What a lane asks of its connection. */
export interface LaneOwner {
  /** How long the next frame takes, ms. */
  delay(): number
  /** Whether a frame vanishes. */
  swallows(): boolean
  /** How many of these bytes may still pass. */
  admit(bytes: number): number
  /** Whether no byte may pass any more: then `breakOff` follows. */
  exhausted(): boolean
  breakOff(): void
  /** A frame is kept back by this. */
  heldUp(reason: HoldReason): void
  /** For what is sent again after a hold, ms. */
  resendDelay(): number
}

export function createLane(timeline: Timeline, owner: LaneOwner): Lane {
  return new OrderedLane(timeline, owner)
}

interface Travelling {
  readonly frame: Frame
  at: number
}

class OrderedLane implements Lane {
  readonly #timeline: Timeline
  readonly #owner: LaneOwner
  /** Bounded by the windows of the channels and, for gossip, by whoever pushes looking at `queuedBytes`. */
  #travelling: Travelling[] = []
  readonly #holds = new Set<HoldReason>()
  #queuedBytes = 0
  #cancel: (() => void) | undefined
  #closed = false

  constructor(timeline: Timeline, owner: LaneOwner) {
    this.#timeline = timeline
    this.#owner = owner
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  push(frame: Frame): void {
    if (this.#closed || this.#owner.swallows()) return
    for (const reason of this.#holds) this.#owner.heldUp(reason)
    const last = this.#travelling.at(-1)
    const at = Math.max(last?.at ?? 0, this.#timeline.now() + this.#owner.delay())
    this.#travelling.push({ frame, at })
    this.#queuedBytes += frame.size
    this.#schedule()
  }

  hold(reason: HoldReason): void {
    if (this.#travelling.length > 0) this.#owner.heldUp(reason)
    this.#holds.add(reason)
    this.#unschedule()
  }

  release(reason: HoldReason): void {
    if (!this.#holds.delete(reason) || this.#holds.size > 0) return
    const earliest = this.#timeline.now() + this.#owner.resendDelay()
    for (const one of this.#travelling) one.at = Math.max(one.at, earliest)
    this.#schedule()
  }

  clear(): void {
    this.#travelling = []
    this.#queuedBytes = 0
    this.#unschedule()
  }

  close(): void {
    this.#closed = true
    this.clear()
  }

  #schedule(): void {
    const next = this.#travelling[0]
    if (!next || this.#cancel || this.#holds.size > 0) return
    this.#cancel = this.#timeline.schedule(next.at - this.#timeline.now(), () => {
      this.#cancel = undefined
      try {
        this.#arrivals()
      } finally {
        // Also when a listener has thrown: the world goes on for whoever catches it.
        this.#schedule()
      }
    })
  }

  #unschedule(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  #arrivals(): void {
    const afterwards = new Set<() => void>()
    let broken = false
    while (!broken && this.#holds.size === 0) {
      const next = this.#travelling[0]
      if (!next || next.at > this.#timeline.now()) break
      this.#travelling.shift()
      this.#queuedBytes -= next.frame.size
      const more = next.frame.arrive(this.#owner.admit(next.frame.size))
      if (more) afterwards.add(more)
      broken = this.#owner.exhausted()
    }
    for (const run of afterwards) run()
    if (broken) this.#owner.breakOff()
  }
}
