import { readUvarint, uvarintLength, writeUvarint } from '../bytes/varint.ts'
import { HermesError } from '../errors/hermes-error.ts'
import { LIMITS, MAX_SINGLE_FRAME } from '../limits.ts'

/** What travels on a stream after its opening envelope. */
export type Chunk =
  | { readonly kind: 'data'; readonly index: number; readonly bytes: Uint8Array }
  /** `frame` is a whole frame of one envelope of type `end`, its length included. */
  | { readonly kind: 'end'; readonly frame: Uint8Array }
  /** Hold back with data until `resume`. */
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** This side gives the stream up; `code` is one of the error table, or of a newer peer. */
  | { readonly kind: 'abort'; readonly code: string }

const DATA = 0
const END = 1
const PAUSE = 2
const RESUME = 3
const ABORT = 4

const CODE = /^[A-Z][A-Z0-9_]{0,63}$/
/** Largest body of each kind, the byte of the kind included. */
const MOST: Readonly<Record<number, number>> = {
  [DATA]: 1 + 5 + LIMITS.chunk,
  [END]: 1 + 5 + MAX_SINGLE_FRAME,
  [PAUSE]: 1,
  [RESUME]: 1,
  [ABORT]: 1 + 64,
}
/** Largest body of any kind. */
export const MAX_CHUNK_BODY = 1 + 5 + MAX_SINGLE_FRAME
/** So many bytes are enough to judge a chunk's length by its kind. */
export const CHUNK_HEAD = 6

/** One piece of data, 1 byte to 64 KiB, as a whole chunk. The first has index 1. Throws `LIMIT_EXCEEDED`, `MALFORMED`. */
export function encodeData(index: number, bytes: Uint8Array): Uint8Array {
  checkData(index, bytes.length)
  const body = 1 + uvarintLength(index) + bytes.length
  const out = Buffer.allocUnsafe(uvarintLength(body) + body)
  let at = writeUvarint(out, 0, body)
  out[at++] = DATA
  out.set(bytes, writeUvarint(out, at, index))
  return out
}

/** The signed end around a whole frame. */
export function encodeEnd(frame: Uint8Array): Uint8Array {
  return wrap(END, frame)
}

export function encodePause(): Uint8Array {
  return wrap(PAUSE, NOTHING)
}

export function encodeResume(): Uint8Array {
  return wrap(RESUME, NOTHING)
}

export function encodeAbort(code: string): Uint8Array {
  if (!CODE.test(code)) throw malformed('the code of an abort is not like TIMEOUT')
  return wrap(ABORT, Buffer.from(code, 'latin1'))
}

/**
 * Judges the first bytes of a chunk, before the rest of it is waited for: its length against the limit of its kind. Gives
 * the length of the whole chunk and whether it says something about the data (`data`, `end`) or only steers it; undefined
 * while there are too few bytes to tell. Throws `LIMIT_EXCEEDED`, `UNKNOWN_TAG`, `MALFORMED`.
 */
export function judgeChunk(head: Uint8Array): { readonly whole: number; readonly steers: boolean } | undefined {
  const length = readUvarint(head, 0)
  if (!length) return undefined
  if (length.value === 0) throw malformed('a chunk without a kind')
  if (length.value > MAX_CHUNK_BODY) throw tooLarge('a chunk', length.value, MAX_CHUNK_BODY)
  const kind = head[length.end]
  if (kind === undefined) return undefined
  const most = MOST[kind]
  if (most === undefined) {
    throw new HermesError('UNKNOWN_TAG', { message: `chunk kind ${kind} is not known`, details: { kind } })
  }
  if (length.value > most) throw tooLarge(`a chunk of kind ${kind}`, length.value, most)
  return { whole: length.end + length.value, steers: kind !== DATA && kind !== END }
}

/** Reads the body of a chunk (what follows its length); nothing may be left over. Throws as `judgeChunk` does. */
export function decodeChunk(body: Uint8Array): Chunk {
  const kind = body[0]
  if (kind === undefined) throw malformed('a chunk without a kind')
  const most = MOST[kind]
  if (most === undefined) {
    throw new HermesError('UNKNOWN_TAG', { message: `chunk kind ${kind} is not known`, details: { kind } })
  }
  if (body.length > most) throw tooLarge(`a chunk of kind ${kind}`, body.length, most)
  switch (kind) {
    case DATA: {
      const index = readUvarint(body, 1)
      if (!index) throw malformed('a chunk that ends inside its index')
      const bytes = body.subarray(index.end)
      checkData(index.value, bytes.length)
      return { kind: 'data', index: index.value, bytes }
    }
    case END: {
      const frame = body.subarray(1)
      const length = readUvarint(frame, 0)
      if (!length || length.end + length.value !== frame.length) throw malformed('an end holds exactly one frame')
      return { kind: 'end', frame }
    }
    case ABORT: {
      const code = Buffer.from(body.subarray(1)).toString('latin1')
      if (!CODE.test(code)) throw malformed('the code of an abort is not like TIMEOUT')
      return { kind: 'abort', code }
    }
    default:
      return { kind: kind === PAUSE ? 'pause' : 'resume' }
  }
}

const NOTHING = new Uint8Array(0)

function wrap(kind: number, rest: Uint8Array): Uint8Array {
  const body = 1 + rest.length
  const most = MOST[kind] as number
  if (body > most) throw tooLarge(`a chunk of kind ${kind}`, body, most)
  const out = Buffer.allocUnsafe(uvarintLength(body) + body)
  const at = writeUvarint(out, 0, body)
  out[at] = kind
  out.set(rest, at + 1)
  return out
}

function checkData(index: number, size: number): void {
  if (index < 1) throw malformed('the first chunk of data has index 1')
  if (size === 0) throw malformed('a chunk of data without data')
  if (size > LIMITS.chunk) throw tooLarge('a chunk of data', size, LIMITS.chunk)
}

function malformed(message: string): HermesError {
  return new HermesError('MALFORMED', { message })
}

function tooLarge(what: string, size: number, limit: number): HermesError {
  return new HermesError('LIMIT_EXCEEDED', {
    message: `${what} has ${size} bytes, the limit is ${limit}`,
    details: { size, limit },
  })
}
