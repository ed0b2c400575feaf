import type { ResultStream } from 'hermes-peer'
import type { review, watchTests } from '../contracts.ts'

/** Of what a command writes at another agent. */
export interface Piece {
  readonly text: string
  readonly leftOut?: number | undefined
}

/** Reads a stream to its end, telling each piece that holds text, and resolves with its result. */
export function readStream<C extends typeof review | typeof watchTests>(
  stream: ResultStream<C>,
  onPiece: (piece: Piece) => void,
): ResultStream<C>['result'] {
  const read = async (): Promise<void> => {
    for await (const piece of stream as AsyncIterable<Piece>) if (piece.text !== '') onPiece(piece)
  }
  return read().then(() => stream.result)
}
