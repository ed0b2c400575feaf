import type { Connection, Stream } from '@libp2p/interface'
import type { Channel, ChannelListener } from '../network.ts'

/**
 * After `close`, what was sent may take this long to be flushed and the other side to end its half; then the stream is
 * reset, so that a peer that neither reads nor closes cannot keep it for ever.
 */
const LINGER_MS = 5000

/** A channel over one yamux stream of a connection. */
export function createChannel(stream: Stream, connection: Connection): Channel {
  return new StreamChannel(stream, connection)
}

class StreamChannel implements Channel {
  readonly remotePeer: string
  readonly remoteAddress: string
  readonly direction: 'inbound' | 'outbound'
  readonly #stream: Stream
  #listener: ChannelListener | undefined
  /** How it ended, once it has; told as soon as there is a listener. */
  #end: { error?: Error } | undefined
  /** The other side has said that it sends no more. A connection that is lost says nothing. */
  #remoteEnded = false
  #closing: Promise<void> | undefined
  #wantsDrain = false

  constructor(stream: Stream, connection: Connection) {
    this.#stream = stream
    this.remotePeer = connection.remotePeer.toString()
    this.remoteAddress = connection.remoteAddr.toString()
    this.direction = stream.direction
    stream.addEventListener('close', ({ error }) => this.#onClose(error))
    stream.addEventListener('remoteCloseWrite', () => this.#onRemoteEnd())
    // libp2p goes on with its own buffer in a microtask of this event; only after it is known whether there is room.
    stream.addEventListener('drain', () => queueMicrotask(() => this.#onDrain()))
    // The first bytes and the end may have come before this; without a listener for messages, bytes wait in the stream.
    if (stream.status !== 'open') this.#onClose(new Error(`the stream was ${stream.status} before it was used`))
    else if (stream.remoteWriteStatus === 'closed') this.#onRemoteEnd()
  }

  get unsentBytes(): number {
    return this.#stream.writeBufferLength
  }

  listen(listener: ChannelListener): void {
    this.#listener = listener
    if (this.#end !== undefined) {
      this.#report(this.#end)
      return
    }
    this.#stream.addEventListener('message', ({ data }) => {
      if (this.#end !== undefined) return
      this.#guard(() => listener.data(data instanceof Uint8Array ? data : data.subarray()))
      this.#checkEnd()
    })
  }

  send(bytes: Uint8Array): boolean {
    if (this.#end !== undefined || this.#closing !== undefined) return false
    let more = false
    try {
      more = this.#stream.send(bytes)
    } catch {
      // It has just ended; `closed` tells why.
      return false
    }
    if (!more) this.#wantsDrain = true
    return more
  }

  pause(): void {
    ignoringState(() => this.#stream.pause())
  }

  resume(): void {
    ignoringState(() => this.#stream.resume())
  }

  close(): Promise<void> {
    this.#closing ??= this.#flushAndClose()
    return this.#closing
  }

  abort(error: Error): void {
    this.#finish(error)
    this.#stream.abort(error)
  }

  async #flushAndClose(): Promise<void> {
    const stream = this.#stream
    if (stream.status !== 'open') return
    const gone = new Promise<void>((resolve) => stream.addEventListener('close', () => resolve(), { once: true }))
    const linger = setTimeout(() => {
      stream.abort(new Error(`the other side did not end the stream within ${LINGER_MS} ms`))
      // A stream that both sides have closed cannot be aborted; what the listener has not taken by now is dropped.
      this.#finish()
    }, LINGER_MS)
    linger.unref()
    void gone.then(() => {
      // Bytes may still wait for a listener that has paused.
      if (this.#end !== undefined) clearTimeout(linger)
    })
    // A reset in the middle leaves libp2p's own promise pending.
    await Promise.race([gone, stream.close().catch(() => undefined)])
  }

  #onDrain(): void {
    if (!this.#wantsDrain || this.#stream.writableNeedsDrain || this.#end !== undefined) return
    this.#wantsDrain = false
    const listener = this.#listener
    if (listener !== undefined && this.#closing === undefined) this.#guard(() => listener.drained())
  }

  #onRemoteEnd(): void {
    this.#remoteEnded = true
    // The last bytes may be in the frame that says so, and come right after this.
    queueMicrotask(() => this.#checkEnd())
  }

  /**
   * Whether the other side has ended and everything that it sent is delivered. libp2p's own `end` does not tell: it
   * comes too early when bytes that arrived during the negotiation of the protocol are put back into the stream.
   */
  #checkEnd(): void {
    const { readBufferLength, status } = this.#stream
    if (!this.#remoteEnded || readBufferLength > 0 || this.#end !== undefined) return
    if (this.#closing === undefined) void this.close()
    // After an own `close` what was sent has to arrive first: both sides have then closed.
    else if (status === 'open') return
    this.#finish()
  }

  #onClose(error: Error | undefined): void {
    const delivered = this.#stream.readBufferLength === 0
    if (this.#remoteEnded && delivered && (error === undefined || this.#closing === undefined)) this.#finish()
    else if (error !== undefined) this.#finish(error)
    else if (!this.#remoteEnded) this.#finish(new Error('the connection was lost'))
    // Else bytes wait for a listener that has paused; the end comes after them.
  }

  #finish(error?: Error): void {
    if (this.#end !== undefined) return
    this.#end = error === undefined ? {} : { error }
    this.#report(this.#end)
  }

  #report(end: { error?: Error }): void {
    const listener = this.#listener
    if (listener === undefined) return
    ignoringState(() => listener.closed(end.error))
  }

  /** A listener that throws must not take the process along; its channel is of no more use. */
  #guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.abort(error instanceof Error ? error : new Error(String(error)))
    }
  }
}

/** Pausing, resuming or ending what has ended already is no mistake here. */
function ignoringState(run: () => void): void {
  try {
    run()
  } catch {
    // The end of the stream is told by `closed`, once.
  }
}
