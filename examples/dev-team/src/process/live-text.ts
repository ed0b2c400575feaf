import { StringDecoder } from 'node:string_decoder'

/** What a command writes, handed on while it runs. */
export interface LiveText {
  /** Bytes as they come; each of the command's outputs is decoded on its own, so that no character is cut. */
  push(chunk: Uint8Array, from: 'stdout' | 'stderr'): void
  /** Nothing more comes. */
  end(): void
  /** Piece after piece until the end. Who reads slowly misses the oldest, and is told how many characters. */
  pieces(): AsyncGenerator<{ text: string; leftOut?: number }, void, undefined>
}

export interface LiveTextOptions {
  /** Longest piece, UTF-16 units. */
  pieceLength: number
  /** Longest text that waits for its reader, UTF-16 units. Default four pieces. */
  keep?: number
  /** Output that follows within this time comes in one piece, ms. Default 100. */
  gatherMs?: number
  /** After this long a silence an empty piece is told, ms. Default 10,000: a stream may be silent for 30 s. */
  aliveMs?: number
}

export function createLiveText({
  pieceLength,
  keep = 4 * pieceLength,
  gatherMs = 100,
  aliveMs = 10_000,
}: LiveTextOptions): LiveText {
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  let waiting = ''
  let leftOut = 0
  let ended = false
  let wake = (): void => {}

  const add = (text: string): void => {
    if (text === '') return
    waiting += text
    if (waiting.length > keep) {
      const over = waiting.length - keep
      const cut = isWithinCharacter(waiting, over) ? over + 1 : over
      leftOut += cut
      waiting = waiting.slice(cut)
    }
    wake()
  }
  /** Resolves after `ms`, or as soon as `enough` holds after something came. */
  const until = (ms: number, enough: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const settle = (): void => {
        clearTimeout(timer)
        wake = () => {}
        resolve()
      }
      const timer = setTimeout(settle, ms)
      wake = () => {
        if (enough()) settle()
      }
      wake()
    })
  const take = (): { text: string; leftOut?: number } => {
    const cut = isWithinCharacter(waiting, pieceLength) ? pieceLength - 1 : pieceLength
    const piece = { text: waiting.slice(0, cut), ...(leftOut > 0 ? { leftOut } : {}) }
    waiting = waiting.slice(cut)
    leftOut = 0
    return piece
  }

  return {
    push: (chunk, from) => add(decoders[from].write(Buffer.from(chunk))),
    end() {
      for (const decoder of Object.values(decoders)) add(decoder.end())
      ended = true
      wake()
    },
    async *pieces() {
      for (;;) {
        await until(aliveMs, () => ended || waiting !== '')
        if (waiting !== '') await until(gatherMs, () => ended || waiting.length >= pieceLength)
        if (ended && waiting === '') return
        yield take()
      }
    },
  }
}

/** Whether the two units of one character stand before and behind `index`. */
function isWithinCharacter(text: string, index: number): boolean {
  const code = text.charCodeAt(index)
  return code >= 0xdc00 && code <= 0xdfff
}
