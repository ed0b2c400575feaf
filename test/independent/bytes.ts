import { type Fault, Refused } from './refused.ts'

/** Reads forward through bytes that were received; every step past the end is a refusal. */
export interface Cursor {
  readonly left: number
  byte(): number
  take(count: number): Uint8Array
  uvarint(): number
  /** `part(x)`: the length is judged before a byte of x is touched. */
  part(limit: number): Uint8Array
  /** Nothing may be left over. */
  end(): void
}

export function cursor(bytes: Uint8Array, fault: Fault): Cursor {
  let at = 0
  const no = (why: string): never => {
    throw new Refused(fault, why)
  }
  const self: Cursor = {
    get left() {
      return bytes.length - at
    },
    byte() {
      const value = bytes[at]
      if (value === undefined) return no('ends too early')
      at += 1
      return value
    },
    take(count) {
      if (count > bytes.length - at) no(`${count} bytes wanted, ${bytes.length - at} left`)
      const slice = bytes.subarray(at, at + count)
      at += count
      return slice
    },
    uvarint() {
      let value = 0
      let factor = 1
      for (;;) {
        const next = self.byte()
        value += (next & 0x7f) * factor
        if (factor > 2 ** 28) throw new Refused('size', 'a length of more than five bytes')
        if (next < 0x80) {
          // One number has one spelling: a last group of zero adds nothing.
          if (next === 0 && factor > 1) no('a length with needless bytes')
          return value
        }
        factor *= 128
      }
    },
    part(limit) {
      const length = self.uvarint()
      if (length > limit) throw new Refused('size', `a part of ${length} bytes where ${limit} are allowed`)
      return self.take(length)
    },
    end() {
      if (at !== bytes.length) no(`${bytes.length - at} bytes left over`)
    },
  }
  return self
}

export function uvarint(value: number): Uint8Array {
  const out: number[] = []
  let rest = value
  while (rest >= 128) {
    out.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  out.push(rest)
  return Uint8Array.from(out)
}

export const join = (...pieces: Uint8Array[]): Uint8Array => Buffer.concat(pieces)

export const partOf = (bytes: Uint8Array): Uint8Array => join(uvarint(bytes.length), bytes)

export const ascii = (text: string): Uint8Array => Buffer.from(text, 'utf8')

/** `hermes-peer/<what>/1 ‖ 0x00`, which stands before everything that is signed. */
export const domain = (what: string): Uint8Array => ascii(`hermes-peer/${what}/1\0`)

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

export const unhex = (text: string): Uint8Array => Buffer.from(text, 'hex')
