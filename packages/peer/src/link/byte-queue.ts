import { HermesError, readUvarint } from '@hermes-peer/protocol'

/** Chunks are put together up to this size, bytes. */
const GATHERED = 16 * 1024

/**
 * Collects received chunks and cuts parts out of them. A length is compared with the limit before its bytes are waited for, so
 * at most limit + one chunk is ever kept.
 */
export class ByteQueue {
  #head: Uint8Array = new Uint8Array(0)
  #rest: Uint8Array[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    if (this.#head.length === 0) this.#head = chunk
    else this.#gather(chunk)
    this.#size += chunk.length
  }

  /** The next part's bytes, undefined until all of them are there. Throws `LIMIT_EXCEEDED` or `MALFORMED`. */
  part(limit: number): Uint8Array | undefined {
    if (this.#head.length < 5 && this.#rest.length > 0) this.#flatten(5)
    const length = readUvarint(this.#head, 0)
    if (!length) return undefined
    if (length.value > limit) {
      throw new HermesError('LIMIT_EXCEEDED', {
        message: `a frame of ${length.value} bytes, the limit is ${limit}`,
        details: { size: length.value, limit },
      })
    }
    const whole = length.end + length.value
    if (this.#size < whole) return undefined
    if (this.#head.length < whole) this.#flatten(whole)
    const part = this.#head.subarray(length.end, whole)
    this.#consume(whole)
    return part
  }

  /** The first bytes, up to `length` of them, left where they are. */
  peek(length: number): Uint8Array {
    if (this.#head.length < length && this.#rest.length > 0) this.#flatten(length)
    return this.#head.subarray(0, length)
  }

  /** Exactly `length` bytes, undefined until they are there. */
  take(length: number): Uint8Array | undefined {
    if (this.#size < length) return undefined
    if (this.#head.length < length) this.#flatten(length)
    const taken = this.#head.subarray(0, length)
    this.#consume(length)
    return taken
  }

  /** Small chunks are put together as they come, each into one of its own size: a byte of a message must not cost a buffer. */
  #gather(chunk: Uint8Array): void {
    const rest = this.#rest
    let last = chunk
    for (let before = rest.at(-1); before; before = rest.at(-1)) {
      if (before.length > 2 * last.length || before.length + last.length > GATHERED) break
      rest.pop()
      last = Buffer.concat([before, last])
    }
    rest.push(last)
  }

  #consume(length: number): void {
    this.#head = this.#head.subarray(length)
    this.#size -= length
    if (this.#head.length === 0) this.#head = this.#rest.shift() ?? this.#head
  }

  /** Puts so many bytes together at the front, and no more: what waits behind them is not copied. */
  #flatten(need: number): void {
    const pieces = [this.#head]
    let size = this.#head.length
    for (let next = this.#rest[0]; next && size < need; next = this.#rest[0]) {
      this.#rest.shift()
      pieces.push(next)
      size += next.length
    }
    this.#head = Buffer.concat(pieces, size)
  }
}
