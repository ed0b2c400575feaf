import {
  decodePayload,
  type EndPayload,
  HermesError,
  LIMITS,
  MAX_SINGLE_FRAME,
  Reader,
  readEndPayload,
  sha256Pieces,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Inbox, Incoming } from '../delivery/inbox.ts'
import { ByteQueue } from '../link/byte-queue.ts'
import type { Piece } from './inflow.ts'
import type { Stream } from './stream.ts'

/** Reads the signed end of a stream and holds it against what came. Throws what is wrong with it. */
export function readEnd(stream: Stream, frame: Uint8Array, inbox: Inbox): EndPayload {
  const reader = new Reader(frame)
  const { header, payload } = inbox.receiveEnd(stream.link, reader.part(MAX_SINGLE_FRAME, 'the frame'))
  if (header.message_type !== 'end' || header.in_reply_to !== stream.leaf) {
    throw new HermesError('STREAM_BROKEN', { message: 'the end belongs to another stream' })
  }
  const end = readEndPayload(decodePayload(header.content_type, payload))
  stream.in.chain.check(end)
  return end
}

/** The next piece, or `STREAM_BROKEN` when none comes within `ms`. */
export async function nextWithin(stream: Stream, ms: number, clock: Clock): Promise<Piece> {
  const timer = clock.after(ms, () =>
    stream.abort(
      new HermesError('STREAM_BROKEN', { message: `nothing came from ${stream.link.remote.agentId} for ${ms} ms` }),
    ),
  )
  try {
    return await stream.next()
  } finally {
    clock.clear(timer)
  }
}

export interface PayloadOptions {
  readonly inbox: Inbox
  readonly clock: Clock
  readonly tunables: Tunables
  /** Told of every piece: bytes so far. */
  progress(bytes: number): void
  /** Gives up when nobody waits for it any more. Default: somebody does. */
  wanted?(): boolean
}

/**
 * Collects a payload that travels apart. Nothing is allocated by what its header says: it grows by what comes. Throws
 * `PAYLOAD_MISMATCH` when more, less or other bytes come, `STREAM_BROKEN` when they end too early, `CANCELLED` when nobody
 * wants it.
 */
export async function collectPayload(
  stream: Stream,
  { header }: Pick<Incoming, 'header'>,
  { inbox, clock, tunables, progress, wanted = () => true }: PayloadOptions,
): Promise<Uint8Array> {
  // Put together as they come: a payload in chunks of one byte must not cost an object for each.
  const bytes = new ByteQueue()
  const hash = sha256Pieces()
  let size = 0
  const mismatch = (what: string) =>
    new HermesError('PAYLOAD_MISMATCH', {
      message: `the payload ${what}, the header says ${header.payload_size} bytes`,
    })
  for (;;) {
    const piece = await nextWithin(stream, tunables.streamIdleMs, clock)
    if (piece.kind === 'end') {
      const end = readEnd(stream, piece.frame, inbox)
      if (end.status !== 'completed') throw new HermesError('STREAM_BROKEN', { message: 'the payload was given up' })
      break
    }
    if (!wanted()) throw new HermesError('CANCELLED', { message: 'nobody waits for the payload any more' })
    size += piece.bytes.length
    if (size > header.payload_size) throw mismatch('goes on')
    hash.add(piece.bytes)
    bytes.push(piece.bytes)
    progress(size)
  }
  if (size !== header.payload_size) throw mismatch(`ended after ${size} bytes`)
  if (hash.digest() !== header.payload_sha256) throw mismatch('has another hash')
  return bytes.take(size) as Uint8Array
}

/**
 * Sends a payload in chunks, and the end that `seal` makes of what was sent. Resolves when all of it has been read; with
 * `halfOnly`, when it has been handed over, since the other side has its own to say on the same stream.
 */
export async function sendPayload(
  stream: Stream,
  payload: Uint8Array,
  seal: (end: EndPayload) => Uint8Array,
  { progress, halfOnly = false }: Pick<PayloadOptions, 'progress'> & { halfOnly?: boolean },
): Promise<void> {
  const { out } = stream
  for (let at = 0; at < payload.length; at += LIMITS.chunk) {
    if (out.held) await out.ready()
    out.data(payload.subarray(at, at + LIMITS.chunk))
    progress(Math.min(payload.length, at + LIMITS.chunk))
  }
  const { count, hash } = out.chain
  const frame = seal({ status: 'completed', count, running_hash: hash })
  await (halfOnly ? out.end(frame) : stream.end(frame))
}
