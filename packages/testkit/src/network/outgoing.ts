import type { SeededRandom } from '../random/seeded-random.ts'
import { segmentLength } from './segments.ts'

/** The sending half of a channel: what was given to `send` and has not been put on the way. */
export interface Outgoing {
  /** Bytes that wait for room in the window. */
  readonly waitingBytes: number
  /** Whether `close` has been called. */
  readonly ending: boolean
  /** Whether everything and the end have been put on the way, or dropped. */
  readonly finished: boolean
  /** Whether the caller may go on. */
  send(bytes: Uint8Array): boolean
  /** The other side has read this much. */
  credit(bytes: number): void
  /** Resolves when everything and the end have been put on the way, or dropped. */
  close(): Promise<void>
  /** What waits will never be sent. */
  drop(): void
}

export interface OutgoingOptions {
  windowBytes: number
  random: SeededRandom
  /** Puts a piece on the way. */
  emit(bytes: Uint8Array): void
  /** Puts the end on the way. */
  emitEnd(): void
  /** Nothing waits any more, after `send` had said `false`. */
  drained(): void
}

export function createOutgoing(options: OutgoingOptions): Outgoing {
  return new WindowedOutgoing(options)
}

class WindowedOutgoing implements Outgoing {
  readonly #options: OutgoingOptions
  /** Bounded by the channel, which resets itself over its limit. */
  readonly #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #room: number
  #saidFalse = false
  #closing: PromiseWithResolver | undefined
  #finished = false

  constructor(options: OutgoingOptions) {
    this.#options = options
    this.#room = options.windowBytes
  }

  get waitingBytes(): number {
    return this.#waitingBytes
  }

  get ending(): boolean {
    return this.#closing !== undefined
  }

  get finished(): boolean {
    return this.#finished
  }

  send(bytes: Uint8Array): boolean {
    if (bytes.length > 0) {
      this.#waiting.push(bytes)
      this.#waitingBytes += bytes.length
      this.#flush()
    }
    this.#saidFalse = this.#waitingBytes > 0
    return !this.#saidFalse
  }

  credit(bytes: number): void {
    if (this.#finished) return
    this.#room += bytes
    this.#flush()
    if (this.#waitingBytes > 0) return
    if (this.#closing) this.#finish()
    else if (this.#saidFalse) {
      this.#saidFalse = false
      this.#options.drained()
    }
  }

  close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = promiseWithResolver()
      if (this.#finished) this.#closing.resolve()
      else if (this.#waitingBytes === 0) this.#finish()
    }
    return this.#closing.promise
  }

  drop(): void {
    this.#waiting.length = 0
    this.#waitingBytes = 0
    this.#finished = true
    this.#closing?.resolve()
  }

  #finish(): void {
    this.#finished = true
    this.#options.emitEnd()
    this.#closing?.resolve()
  }

  #flush(): void {
    while (this.#room > 0) {
      const first = this.#waiting[0]
      if (!first) return
      const length = segmentLength(Math.min(first.length, this.#room), this.#options.random)
      if (length === first.length) this.#waiting.shift()
      else this.#waiting[0] = first.subarray(length)
      this.#room -= length
      this.#waitingBytes -= length
      this.#options.emit(first.subarray(0, length))
    }
  }
}

interface PromiseWithResolver {
  readonly promise: Promise<void>
  resolve(): void
}

function promiseWithResolver(): PromiseWithResolver {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
