import { encodeAbort, HermesError, isErrorCode } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Link } from '../link/link.ts'
import type { Channel } from '../network/network.ts'
import { createInflow, type Inflow, type Piece, type Steering } from './inflow.ts'
import { createOutflow, type Outflow } from './outflow.ts'

/** One stream after its opening envelope, from either side. */
export interface Stream {
  /** Leaf of the opening envelope. */
  readonly leaf: string
  readonly link: Link
  readonly out: Outflow
  readonly in: Inflow
  /** Whether this side still has something to send, or to be taken: what it sends as an answer, or its signed end. */
  readonly writes: boolean
  /** Data and an end are to come from the other side; once they have, this side may have its own to send. */
  expect(more: { alsoWrites: boolean }): void
  /** The next piece of data, or the end, where they are expected. Rejects with the typed error when there is none. */
  next(): Promise<Piece>
  /**
   * Sends the signed end; resolves when the other side has taken everything and closed, rejects when it gave up before, or does
   * not take it `withinMs` (default `writeStallMs`).
   */
  end(frame: Uint8Array, withinMs?: number): Promise<void>
  /** Everything has been read: ends this side in an orderly way. */
  close(): void
  /** Gives it up with an error; the other side is told its code. */
  abort(error: HermesError): void
  /** Called once, at once if it is over: with the error, or without one after an orderly end. */
  onOver(listener: (error: HermesError | undefined) => void): void
}

export interface StreamOptions {
  readonly leaf: string
  readonly link: Link
  readonly channel: Channel
  readonly clock: Clock
  readonly tunables: Tunables
  flow(side: 'reader' | 'writer', paused: boolean, waiting: number): void
}

/** A stream, and the channel's callbacks that drive it. */
export interface DrivenStream {
  readonly stream: Stream
  received(bytes: Uint8Array): void
  drained(): void
  closed(error?: Error): void
}

export function createStream(options: StreamOptions): DrivenStream {
  const stream = new ChannelStream(options)
  return {
    stream,
    received: (bytes) => stream.received(bytes),
    drained: () => stream.out.drained(),
    closed: (error) => stream.closed(error),
  }
}

class ChannelStream implements Stream {
  readonly leaf: string
  readonly link: Link
  readonly out: Outflow
  readonly in: Inflow
  readonly #options: StreamOptions
  #onlyReads = false
  #over: { error: HermesError | undefined } | undefined
  #listeners: ((error: HermesError | undefined) => void)[] = []

  constructor(options: StreamOptions) {
    const { leaf, link, channel, clock, tunables, flow } = options
    this.#options = options
    this.leaf = leaf
    this.link = link
    this.out = createOutflow({
      leaf,
      clock,
      tunables,
      send: (bytes) => channel.send(bytes),
      stalled: () =>
        this.abort(
          new HermesError('CALLER_GONE', {
            message: `${link.remote.agentId} has read nothing for ${tunables.writeStallMs} ms`,
          }),
        ),
    })
    this.in = createInflow({
      leaf,
      tunables,
      send: (bytes) => void channel.send(bytes),
      steer: (chunk) => this.#steer(chunk),
      flow: (paused, waiting) => flow('reader', paused, waiting),
    })
  }

  received(bytes: Uint8Array): void {
    if (this.#over) return
    try {
      this.in.push(bytes)
    } catch (error) {
      this.abort(HermesError.from(error, 'MALFORMED'))
    }
  }

  get writes(): boolean {
    return this.#over === undefined && !this.#onlyReads
  }

  expect(more: { alsoWrites: boolean }): void {
    this.in.expecting = true
    this.#onlyReads = !more.alsoWrites
  }

  closed(error?: Error): void {
    if (this.#over) return
    void this.#options.channel.close().catch(() => undefined)
    const { agentId } = this.link.remote
    if (this.in.expecting) {
      const reason = new HermesError('STREAM_BROKEN', {
        message: error ? `the stream from ${agentId} was cut` : `${agentId} ended the stream without its signed end`,
        ...(error ? { cause: error } : {}),
      })
      // What has come can still be read; without the end it breaks then.
      this.out.fail(reason)
      this.in.close(reason)
    } else if (this.#onlyReads) this.#finish(undefined)
    else if (this.out.ended)
      this.#finish(error && gone(`${agentId} gave the stream up before it had taken all of it`, error))
    else this.#finish(gone(`${agentId} does not read the stream any more`, error))
  }

  async next(): Promise<Piece> {
    try {
      return await this.in.next()
    } catch (error) {
      const reason = HermesError.from(error)
      this.abort(reason)
      throw this.#over?.error ?? reason
    }
  }

  async end(frame: Uint8Array, withinMs?: number): Promise<void> {
    const { channel, clock, tunables } = this.#options
    const late = (ms: number) =>
      clock.after(ms, () =>
        this.abort(gone(`${this.link.remote.agentId} did not take the end within ${ms} ms`, undefined)),
      )
    let timer = late(withinMs ?? tunables.writeStallMs)
    this.onOver(() => clock.clear(timer))
    try {
      await this.out.end(frame)
    } catch (error) {
      // A reader may have taken all of it, and closed, before the transport has said that there is room again.
      if (this.#over && !this.#over.error) return
      throw error
    }
    clock.clear(timer)
    timer = late(tunables.writeStallMs)
    void channel.close().catch(() => undefined)
    await new Promise<void>((resolve, reject) => this.onOver((error) => (error ? reject(error) : resolve())))
  }

  close(): void {
    if (this.#over) return
    this.#finish(undefined)
    void this.#options.channel.close().catch(() => undefined)
  }

  abort(error: HermesError): void {
    if (this.#over) return
    const { channel, clock, tunables } = this.#options
    this.#finish(error)
    channel.send(encodeAbort(error.code))
    void channel.close().catch(() => undefined)
    // Whoever does not close its half keeps nothing of ours for longer than this.
    clock.after(tunables.callerGraceMs, () => channel.abort(error))
  }

  onOver(listener: (error: HermesError | undefined) => void): void {
    if (this.#over) listener(this.#over.error)
    else this.#listeners.push(listener)
  }

  #steer(chunk: Steering): void {
    if (chunk.kind !== 'abort') {
      const paused = chunk.kind === 'pause'
      if (paused !== this.out.paused) this.#options.flow('writer', paused, 0)
      this.out.pause(paused)
      return
    }
    const { agentId } = this.link.remote
    const error = new HermesError(isErrorCode(chunk.code) ? chunk.code : 'STREAM_BROKEN', {
      message: `${agentId} gave the stream up: ${chunk.code}`,
      details: { code: chunk.code },
      remote: true,
    })
    this.#finish(error)
    void this.#options.channel.close().catch(() => undefined)
  }

  #finish(error: HermesError | undefined): void {
    this.#over = { error }
    const reason = error ?? new HermesError('STREAM_BROKEN', { message: 'the stream has ended' })
    this.out.fail(reason)
    this.in.fail(reason)
    for (const listener of this.#listeners.splice(0)) listener(error)
  }
}

function gone(message: string, cause: Error | undefined): HermesError {
  return new HermesError('CALLER_GONE', { message, ...(cause ? { cause } : {}) })
}
