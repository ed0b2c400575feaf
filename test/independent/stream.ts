import { cursor, hex, join, unhex } from './bytes.ts'
import { sha256 } from './ed25519.ts'
import { readPayload, verifyFrame } from './envelope.ts'
import { readFrame } from './frame.ts'
import type { Header } from './header.ts'
import type { Arrival } from './hops.ts'
import type { Json, JsonMap } from './json.ts'
import { Refused } from './refused.ts'

const KIB = 1024
const MAX_DATA = 64 * KIB
const MAX_ENVELOPE = 1024 * KIB
const MAX_HEADER = 4 * KIB
const MAX_PAYLOAD = 64 * 1024 * KIB

export type Chunk =
  | { kind: 'data'; index: number; bytes: Uint8Array }
  | { kind: 'end'; frame: Uint8Array }
  | { kind: 'pause' }
  | { kind: 'resume' }
  | { kind: 'abort'; code: string }

const KINDS = ['data', 'end', 'pause', 'resume', 'abort'] as const

/** Longest body of a chunk by its kind: the byte of the kind, an index or a length of up to five bytes, and what it holds. */
const MOST = [6 + MAX_DATA, 6 + MAX_ENVELOPE + 16 * KIB + 128, 1, 1, 65]

/** Cuts exactly one chunk. */
export function readChunk(bytes: Uint8Array): Chunk {
  const whole = cursor(bytes, 'frame')
  const length = whole.uvarint()
  if (length > Math.max(...MOST)) throw new Refused('size', `a chunk of ${length} bytes`)
  if (length === 0) throw new Refused('frame', 'a chunk without a kind')
  const number = whole.byte()
  const kind = KINDS[number]
  if (kind === undefined) throw new Refused('tag', `chunk kind ${number}`)
  if (length > (MOST[number] as number)) throw new Refused('size', `a chunk of ${length} bytes of kind ${kind}`)
  const body = cursor(whole.take(length - 1), 'frame')
  whole.end()
  switch (kind) {
    case 'data': {
      const index = body.uvarint()
      if (index === 0 || body.left === 0) throw new Refused('frame', 'no index, or no data')
      if (body.left > MAX_DATA) throw new Refused('size', `${body.left} bytes of data`)
      return { kind, index, bytes: body.take(body.left) }
    }
    case 'end': {
      const frame = body.take(body.left)
      const inner = cursor(frame, 'frame')
      inner.take(inner.uvarint())
      inner.end()
      return { kind, frame }
    }
    case 'abort': {
      const code = Buffer.from(body.take(body.left)).toString('latin1')
      if (!/^[A-Z][A-Z0-9_]{0,63}$/.test(code)) throw new Refused('frame', 'no code')
      return { kind, code }
    }
    default:
      return { kind }
  }
}

/** The envelope that opens a stream, and whether its payload is in the chunks that follow. */
export function readOpening(bytes: Uint8Array, arrival: Arrival): { header: Header; leaf: string; apart: boolean } {
  const frame = readFrame(bytes)
  if (frame.tag === 2) throw new Refused('frame', 'a batch opens no stream')
  const apart = frame.parts.payload.length === 0
  const [envelope] = verifyFrame(frame, arrival, (header) => apart && (header.payload_size as number) > 0)
  const { header, leaf } = envelope as { header: Header; leaf: string }
  const size = header.payload_size as number
  const tooLarge = size > MAX_ENVELOPE - MAX_HEADER
  if (header.call_type !== 'stream' && !tooLarge) throw new Refused('header', 'belongs on a link')
  if (size > MAX_PAYLOAD) throw new Refused('arrival', 'PAYLOAD_TOO_LARGE')
  if (apart ? !tooLarge : header.call_type !== 'stream')
    throw new Refused('binding', 'the payload is not where it belongs')
  return { header, leaf, apart }
}

/** All that one side sends on a stream: the payload of its signed end, and the running hash after each chunk of data. */
export function followStream(
  leaf: string,
  sent: readonly Uint8Array[],
  arrival: Arrival,
): { end: Json; hashes: readonly string[] } {
  const broken = (): never => {
    throw new Refused('arrival', 'STREAM_BROKEN')
  }
  let hash: Uint8Array = unhex(leaf)
  const hashes: string[] = []
  for (const bytes of sent) {
    const chunk = readChunk(bytes)
    if (chunk.kind === 'data') {
      if (chunk.index !== hashes.length + 1) broken()
      hash = sha256(join(hash, bytes))
      hashes.push(hex(hash))
    } else if (chunk.kind === 'end') {
      const [envelope] = verifyFrame(readFrame(chunk.frame), arrival)
      if (envelope?.header.message_type !== 'end' || envelope.header.in_reply_to !== leaf) return broken()
      const end = readPayload(envelope) as JsonMap
      if (end.count !== hashes.length || end.running_hash !== hex(hash)) broken()
      return { end, hashes }
    }
  }
  return broken()
}
