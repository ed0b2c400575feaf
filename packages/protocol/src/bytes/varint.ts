import { HermesError } from '../errors/hermes-error.ts'

/** Longest uvarint read or written, bytes: lengths and counts stay far below 2^35. */
const MAX_BYTES = 5

/** Bytes that `value` takes as unsigned LEB128. */
export function uvarintLength(value: number): number {
  let length = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++
  return length
}

/** Writes `value` at `offset`; returns the offset behind it. */
export function writeUvarint(target: Uint8Array, offset: number, value: number): number {
  let at = offset
  let rest = value
  while (rest >= 0x80) {
    target[at++] = (rest % 0x80) | 0x80
    rest = Math.floor(rest / 0x80)
  }
  target[at++] = rest
  return at
}

/** A number read, and the offset behind it. */
export interface Uvarint {
  value: number
  end: number
}

/**
 * Reads one uvarint; undefined when the bytes end inside it. Only the shortest spelling is accepted.
 * Throws `LIMIT_EXCEEDED` when it runs over 5 bytes, `MALFORMED` when a shorter spelling exists.
 */
export function readUvarint(bytes: Uint8Array, offset: number): Uvarint | undefined {
  let value = 0
  let scale = 1
  for (let i = 0; i < MAX_BYTES; i++) {
    const byte = bytes[offset + i]
    if (byte === undefined) return undefined
    value += (byte & 0x7f) * scale
    if (byte < 0x80) {
      if (byte === 0 && i > 0) throw new HermesError('MALFORMED', { message: 'a length is not in its shortest form' })
      return { value, end: offset + i + 1 }
    }
    scale *= 0x80
  }
  throw new HermesError('LIMIT_EXCEEDED', { message: `a length runs over ${MAX_BYTES} bytes` })
}
