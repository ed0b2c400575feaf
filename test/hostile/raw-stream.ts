import type { Stream } from '@libp2p/interface'
import { eventually } from './eventually.ts'

/** One libp2p stream as bytes, without any notion of what they mean. */
export interface RawStream {
  readonly stream: Stream
  send(bytes: Uint8Array): void
  /** Waits for exactly so many bytes; rejects when the stream ends before. */
  take(length: number): Promise<Uint8Array>
  /** Waits for a whole part; gives its body, or its bytes with the length in front. */
  part(): Promise<Uint8Array>
  rawPart(): Promise<Uint8Array>
  /** Whether the other side has ended or reset it. */
  readonly ended: boolean
  /** How it was reset, if it was. */
  readonly error: Error | undefined
  /** Bytes that have come and were not taken. */
  readonly waiting: number
  untilEnded(ms?: number): Promise<void>
  /** The body of the refusal that came, or undefined when the other side ended without a word. */
  told(ms?: number): Promise<Record<string, unknown> | undefined>
  /** Hands everything on, what has come before included; its end too. */
  pipeTo(to: RawStream): void
  reset(): void
  close(): void
}

export function rawStream(stream: Stream): RawStream {
  return new ByteStream(stream)
}

class ByteStream implements RawStream {
  readonly stream: Stream
  #bytes: Buffer = Buffer.alloc(0)
  #ended = false
  #error: Error | undefined

  constructor(stream: Stream) {
    this.stream = stream
    stream.addEventListener('message', ({ data }) => {
      this.#bytes = Buffer.concat([this.#bytes, data instanceof Uint8Array ? data : data.subarray()])
    })
    stream.addEventListener('remoteCloseWrite', () => {
      this.#ended = true
    })
    stream.addEventListener('close', ({ error }) => {
      this.#ended = true
      this.#error = error
    })
    if (stream.status !== 'open' || stream.remoteWriteStatus === 'closed') this.#ended = true
  }

  get ended(): boolean {
    return this.#ended
  }

  get error(): Error | undefined {
    return this.#error
  }

  get waiting(): number {
    return this.#bytes.length
  }

  send(bytes: Uint8Array): void {
    try {
      this.stream.send(bytes)
    } catch {
      // The other side has reset it; the test sees that by `ended`.
    }
  }

  async take(length: number): Promise<Uint8Array> {
    await eventually(() => this.#bytes.length >= length || this.#over(), `${length} bytes`)
    if (this.#bytes.length < length)
      throw new Error(`the stream ended with ${this.#bytes.length} of ${length} bytes`, { cause: this.#error })
    const taken = this.#bytes.subarray(0, length)
    this.#bytes = this.#bytes.subarray(length)
    return new Uint8Array(taken)
  }

  async part(): Promise<Uint8Array> {
    let length = 0
    let scale = 1
    for (;;) {
      const [byte = 0] = await this.take(1)
      length += (byte & 0x7f) * scale
      if (byte < 0x80) return this.take(length)
      scale *= 128
    }
  }

  async rawPart(): Promise<Uint8Array> {
    const body = await this.part()
    return new Uint8Array(Buffer.concat([varint(body.length), body]))
  }

  async untilEnded(ms?: number): Promise<void> {
    await eventually(() => this.#ended, 'the end of the stream', ms)
  }

  async told(ms?: number): Promise<Record<string, unknown> | undefined> {
    await this.untilEnded(ms)
    if (this.#bytes.length === 0) return undefined
    return JSON.parse(Buffer.from(await this.part()).toString()) as Record<string, unknown>
  }

  pipeTo(to: RawStream): void {
    to.send(this.#bytes)
    this.#bytes = Buffer.alloc(0)
    this.stream.addEventListener('message', ({ data }) => to.send(data instanceof Uint8Array ? data : data.subarray()))
    this.stream.addEventListener('remoteCloseWrite', () => to.close())
    this.stream.addEventListener('close', () => to.close())
  }

  reset(): void {
    this.stream.abort(new Error('reset'))
  }

  close(): void {
    void this.stream.close().catch(() => undefined)
  }

  /** An orderly end may overtake bytes that are still being handed over. */
  #over(): boolean {
    return this.#ended && this.stream.readBufferLength === 0
  }
}

/** Unsigned LEB128, of any size: also of lengths that nobody may use. */
export function varint(value: number | bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt(value)
  do {
    const low = Number(rest & 0x7fn)
    rest >>= 7n
    bytes.push(rest > 0n ? low | 0x80 : low)
  } while (rest > 0n)
  return Buffer.from(bytes)
}

/** part(x), written without the protocol package. */
export function partOf(body: Uint8Array): Uint8Array {
  return new Uint8Array(Buffer.concat([varint(body.length), body]))
}
