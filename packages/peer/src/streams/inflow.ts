import {
  CHUNK_HEAD,
  type Chunk,
  type ChunkChain,
  chunkChain,
  decodeChunk,
  encodePause,
  encodeResume,
  HermesError,
  judgeChunk,
  readUvarint,
} from '@hermes-peer/protocol'
import type { Tunables } from '../defaults.ts'
import { ByteQueue } from '../link/byte-queue.ts'

/** What whoever reads a stream gets of it. */
export type Piece = Extract<Chunk, { kind: 'data' | 'end' }>
/** What needs no reader: done as soon as it is at the front, so behind data that waits it waits too. */
export type Steering = Extract<Chunk, { kind: 'pause' | 'resume' | 'abort' }>

/**
 * What comes on one stream: bytes as received, cut only when somebody asks, so that a slow reader costs its buffer and not the
 * parsed form of it.
 */
export interface Inflow {
  /** Takes what has come. Throws what is wrong with it. */
  push(bytes: Uint8Array): void
  /** The next piece; one may be asked for at a time. Rejects with `STREAM_BROKEN` when the stream ends without it. */
  next(): Promise<Piece>
  /** Nothing more comes: what waits can still be read. */
  close(reason: HermesError): void
  /** Nothing is read any more. */
  fail(reason: HermesError): void
  /** Whether pieces may come. Until then one is a fault of the other side. */
  expecting: boolean
  readonly chain: ChunkChain
  /** Bytes of data so far. */
  readonly bytes: number
  /** Chunks that came after the end, which were ignored; what steers is heard for as long as the other side may write. */
  readonly extra: number
  readonly paused: boolean
}

export interface InflowOptions {
  readonly leaf: string
  readonly tunables: Tunables
  send(bytes: Uint8Array): void
  steer(chunk: Steering): void
  /** The other side was told to pause, or to go on. */
  flow(paused: boolean, waiting: number): void
}

export function createInflow(options: InflowOptions): Inflow {
  return new BufferedInflow(options)
}

interface Asker {
  resolve(piece: Piece): void
  reject(error: HermesError): void
}

class BufferedInflow implements Inflow {
  expecting = false
  readonly chain: ChunkChain
  bytes = 0
  extra = 0
  paused = false
  readonly #options: InflowOptions
  #queue = new ByteQueue()
  #asker: Asker | undefined
  #closed: HermesError | undefined
  #failed: HermesError | undefined
  #ended = false
  /** What came after the end was no chunk: nothing behind it can be told apart. */
  #deaf = false

  constructor(options: InflowOptions) {
    this.#options = options
    this.chain = chunkChain(options.leaf)
  }

  push(bytes: Uint8Array): void {
    if (this.#failed) return
    if (this.#deaf) {
      this.extra++
      return
    }
    this.#queue.push(bytes)
    this.#pump()
    const { streamBufferBytes, streamPauseAt, streamAbortAt } = this.#options.tunables
    const { size } = this.#queue
    if (size >= streamAbortAt * streamBufferBytes) {
      throw new HermesError('STREAM_BROKEN', {
        message: `the other side was told to pause, and ${size} bytes wait all the same`,
        details: { size, limit: Math.floor(streamAbortAt * streamBufferBytes) },
      })
    }
    if (!this.paused && size >= streamPauseAt * streamBufferBytes) this.#flow(true)
  }

  next(): Promise<Piece> {
    return new Promise((resolve, reject) => {
      this.#asker = { resolve, reject }
      try {
        this.#pump()
      } catch (error) {
        this.fail(HermesError.from(error))
        return
      }
      this.#settle()
      if (
        this.paused &&
        this.#queue.size < this.#options.tunables.streamResumeAt * this.#options.tunables.streamBufferBytes
      ) {
        this.#flow(false)
      }
    })
  }

  close(reason: HermesError): void {
    this.#closed ??= reason
    this.#settle()
  }

  fail(reason: HermesError): void {
    this.#failed ??= reason
    this.#queue = new ByteQueue()
    this.#settle()
  }

  #settle(): void {
    const reason = this.#failed ?? this.#closed
    if (!reason) return
    const asker = this.#asker
    this.#asker = undefined
    asker?.reject(reason)
  }

  #pump(): void {
    try {
      this.#cut()
    } catch (error) {
      if (!this.#ended) throw error
      this.#deaf = true
      this.extra++
      this.#queue = new ByteQueue()
    }
  }

  /** Takes from the front what steers, and one piece for whoever asks. */
  #cut(): void {
    const queue = this.#queue
    for (;;) {
      if (this.#failed) return
      const judged = judgeChunk(queue.peek(CHUNK_HEAD))
      if (!judged) return
      if (this.#ended && !judged.steers) {
        if (!queue.take(judged.whole)) return
        this.extra++
        continue
      }
      if (!judged.steers && !this.expecting) {
        throw new HermesError('MALFORMED', { message: 'data came from the side that has none to send' })
      }
      if (!judged.steers && !this.#asker) return
      const sent = queue.take(judged.whole)
      if (!sent) return
      const chunk = decodeChunk(sent.subarray(readUvarint(sent, 0)?.end ?? 0))
      if (chunk.kind === 'data' || chunk.kind === 'end') {
        this.#hand(chunk, sent)
        if (chunk.kind === 'end') continue
        return
      }
      this.#options.steer(chunk)
    }
  }

  #hand(piece: Piece, sent: Uint8Array): void {
    if (piece.kind === 'data') {
      this.chain.add(piece.index, sent)
      this.bytes += piece.bytes.length
    } else {
      this.#ended = true
      this.expecting = false
    }
    const asker = this.#asker
    this.#asker = undefined
    asker?.resolve(piece)
  }

  #flow(paused: boolean): void {
    this.paused = paused
    this.#options.send(paused ? encodePause() : encodeResume())
    this.#options.flow(paused, this.#queue.size)
  }
}
