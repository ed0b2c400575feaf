import type { SeededRandom } from '../random/seeded-random.ts'

/** The receiving half of a channel: what has arrived and has not been read. */
export interface Incoming {
  /** Keeps a copy, as the two ends would not share memory. */
  push(bytes: Uint8Array): void
  /** Nothing more comes. */
  end(): void
  pause(): void
  resume(): void
  /** Hands over what there is, as long as it is wanted. */
  pump(): void
  /** What has not been read is lost. */
  drop(): void
}

export interface IncomingOptions {
  windowBytes: number
  random: SeededRandom
  /** Whether somebody listens. */
  wanted(): boolean
  deliver(bytes: Uint8Array): void
  /** This much has been read since the last time. */
  consumed(bytes: number): void
  /** Everything has been read and nothing more comes; called once. */
  ended(): void
}

export function createIncoming(options: IncomingOptions): Incoming {
  return new BufferedIncoming(options)
}

class BufferedIncoming implements Incoming {
  readonly #options: IncomingOptions
  /** Bounded by the window: the other side sends no more before it has been told that this was read. */
  readonly #unread: Uint8Array[] = []
  #consumed = 0
  #paused = false
  #pumping = false
  #state: 'open' | 'ending' | 'ended' = 'open'

  constructor(options: IncomingOptions) {
    this.#options = options
  }

  push(bytes: Uint8Array): void {
    // Not slice(): of a Buffer that is a view.
    if (bytes.length > 0 && this.#state === 'open') this.#unread.push(new Uint8Array(bytes))
  }

  end(): void {
    if (this.#state === 'open') this.#state = 'ending'
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.pump()
  }

  drop(): void {
    this.#unread.length = 0
    this.#state = 'ended'
  }

  pump(): void {
    // A listener that pauses and resumes inside of `data` comes back here: the loop below goes on by itself.
    if (this.#pumping) return
    this.#pumping = true
    try {
      while (this.#flowing()) {
        const bytes = this.#take()
        if (!bytes) break
        this.#consumed += bytes.length
        this.#options.deliver(bytes)
      }
      if (this.#state === 'ending' && this.#unread.length === 0 && this.#flowing()) {
        this.#state = 'ended'
        this.#options.ended()
      }
    } finally {
      this.#pumping = false
      this.#report()
    }
  }

  #flowing(): boolean {
    return !this.#paused && this.#options.wanted()
  }

  /** One piece, or several as one: borders of writes mean nothing in a stream. */
  #take(): Uint8Array | undefined {
    const first = this.#unread.shift()
    if (!first) return undefined
    const pieces = [first]
    for (let next = this.#unread[0]; next && this.#options.random.chance(0.5); next = this.#unread[0]) {
      pieces.push(next)
      this.#unread.shift()
    }
    return pieces.length === 1 ? first : new Uint8Array(Buffer.concat(pieces))
  }

  #report(): void {
    // At half the window, as yamux does; until then the other side has at least the other half to go on with.
    if (this.#state !== 'open' || this.#consumed * 2 < this.#options.windowBytes) return
    const bytes = this.#consumed
    this.#consumed = 0
    this.#options.consumed(bytes)
  }
}
