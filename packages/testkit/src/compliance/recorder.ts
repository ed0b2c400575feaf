import type { Channel } from 'hermes-peer'

/** A listener that remembers what it was told, to be compared. */
export interface Recorder {
  readonly channel: Channel
  readonly pieces: readonly Uint8Array[]
  /** Bytes in all pieces. */
  readonly size: number
  readonly drains: number
  /** What each call of `closed` gave. */
  readonly closings: readonly (Error | undefined)[]
  /** Called after a piece has been remembered. */
  onData: ((bytes: Uint8Array) => void) | undefined
  listen(): void
  bytes(): Uint8Array
}

export function createRecorder(channel: Channel): Recorder {
  const pieces: Uint8Array[] = []
  const closings: (Error | undefined)[] = []
  let size = 0
  let drains = 0
  const recorder: Recorder = {
    channel,
    pieces,
    closings,
    onData: undefined,
    get size() {
      return size
    },
    get drains() {
      return drains
    },
    bytes: () => Buffer.concat(pieces),
    listen: () =>
      channel.listen({
        data: (bytes) => {
          pieces.push(bytes)
          size += bytes.length
          recorder.onData?.(bytes)
        },
        drained: () => {
          drains += 1
        },
        closed: (error) => {
          closings.push(error)
        },
      }),
  }
  return recorder
}

/** Bytes that differ from place to place and from pattern to pattern, so that loss and exchange are seen. */
export function pattern(length: number, salt: number): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >>> 8) * 17 + salt * 101) & 0xff
  return bytes
}
