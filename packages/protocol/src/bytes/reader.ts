import { HermesError } from '../errors/hermes-error.ts'
import { readUvarint } from './varint.ts'

/** Walks over bytes that must be whole; every read past the end throws `MALFORMED` that names `what`. */
export class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get left(): number {
    return this.#bytes.length - this.#at
  }

  take(length: number, what: string): Uint8Array {
    if (length > this.left) throw new HermesError('MALFORMED', { message: `the bytes end inside ${what}` })
    const taken = this.#bytes.subarray(this.#at, this.#at + length)
    this.#at += length
    return taken
  }

  uvarint(what: string): number {
    const read = readUvarint(this.#bytes, this.#at)
    if (!read) throw new HermesError('MALFORMED', { message: `the bytes end inside ${what}` })
    this.#at = read.end
    return read.value
  }

  /** Reads `part(x)`; the length is compared with `limit` before anything is taken. Throws `LIMIT_EXCEEDED`. */
  part(limit: number, what: string): Uint8Array {
    const length = this.uvarint(what)
    if (length > limit) {
      throw new HermesError('LIMIT_EXCEEDED', {
        message: `${what} has ${length} bytes, the limit is ${limit}`,
        details: { size: length, limit },
      })
    }
    return this.take(length, what)
  }

  end(what: string): void {
    if (this.left > 0) throw new HermesError('MALFORMED', { message: `${this.left} bytes are left over after ${what}` })
  }
}
