import { type ChunkChain, chunkChain, encodeData, encodeEnd, type HermesError } from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'

/** What goes out on one stream: chunks put together into writes, held back when the other side says so or takes nothing. */
export interface Outflow {
  /** Resolves when the next chunk may be made; await it before each. Rejects once the stream is over. */
  ready(): Promise<void>
  /** Whether `ready` would have to wait. */
  readonly held: boolean
  /** One chunk of data, 1 byte to 64 KiB. Throws `LIMIT_EXCEEDED`. */
  data(bytes: Uint8Array): void
  /** The last word. Resolves when everything has been handed to the transport. */
  end(frame: Uint8Array): Promise<void>
  /** The last word has been written, whether or not the transport has room for more. */
  readonly ended: boolean
  /** The other side has said so. */
  pause(paused: boolean): void
  drained(): void
  fail(reason: HermesError): void
  readonly chain: ChunkChain
  /** Bytes of data so far. */
  readonly bytes: number
  readonly paused: boolean
}

export interface OutflowOptions {
  readonly leaf: string
  readonly clock: Clock
  readonly tunables: Tunables
  /** As `Channel.send`. */
  send(bytes: Uint8Array): boolean
  /** The other side has taken nothing for `writeStallMs`. */
  stalled(): void
}

export function createOutflow(options: OutflowOptions): Outflow {
  return new CoalescingOutflow(options)
}

class CoalescingOutflow implements Outflow {
  readonly chain: ChunkChain
  bytes = 0
  paused = false
  ended = false
  readonly #options: OutflowOptions
  #batch: Uint8Array[] = []
  #batchBytes = 0
  #flushing = false
  #full = false
  #stall: Timer | undefined
  /** After a full write the event loop gets a turn: a producer that never waits must not hold up everything else. */
  #turn: Promise<void> | undefined
  #failed: HermesError | undefined
  #waiting: { resolve(): void; reject(error: HermesError): void }[] = []

  constructor(options: OutflowOptions) {
    this.#options = options
    this.chain = chunkChain(options.leaf)
  }

  async ready(): Promise<void> {
    while (this.held) {
      if (this.#failed) throw this.#failed
      if (this.#turn !== undefined) await this.#turn
      else await new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }))
    }
  }

  data(bytes: Uint8Array): void {
    if (this.#failed) throw this.#failed
    const index = this.chain.count + 1
    const chunk = encodeData(index, bytes)
    this.chain.add(index, chunk)
    this.bytes += bytes.length
    this.#batch.push(chunk)
    this.#batchBytes += chunk.length
    if (this.#batchBytes >= this.#options.tunables.streamWriteBytes) {
      this.#flush()
      this.#turn ??= new Promise((resolve) =>
        setImmediate(() => {
          this.#turn = undefined
          resolve()
        }),
      )
    } else if (!this.#flushing) {
      this.#flushing = true
      process.nextTick(() => {
        this.#flushing = false
        this.#flush()
      })
    }
  }

  async end(frame: Uint8Array): Promise<void> {
    await this.ready()
    this.#batch.push(encodeEnd(frame))
    this.#flush()
    this.ended = true
    await this.ready()
  }

  pause(paused: boolean): void {
    this.paused = paused
    this.#wake()
  }

  drained(): void {
    this.#full = false
    this.#options.clock.clear(this.#stall)
    this.#wake()
  }

  fail(reason: HermesError): void {
    this.#failed ??= reason
    this.#batch = []
    this.#options.clock.clear(this.#stall)
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failed)
  }

  get held(): boolean {
    return this.paused || this.#full || this.#turn !== undefined || this.#failed !== undefined
  }

  #wake(): void {
    if (this.paused || this.#full) return
    for (const { resolve } of this.#waiting.splice(0)) resolve()
  }

  #flush(): void {
    const batch = this.#batch
    if (batch.length === 0 || this.#failed) return
    this.#batch = []
    this.#batchBytes = 0
    const { send, clock, tunables, stalled } = this.#options
    if (send(batch.length === 1 ? (batch[0] as Uint8Array) : Buffer.concat(batch))) return
    if (this.#full) return
    this.#full = true
    this.#stall = clock.after(tunables.writeStallMs, stalled)
  }
}
