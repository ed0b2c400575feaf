import type { CallOptions, Peer } from 'hermes-peer'
import { review } from '../contracts.ts'
import { type Piece, readStream } from './read-stream.ts'
import { toBase64 } from './wire.ts'

/** Has a patch reviewed; `onPiece` is told what the suite writes meanwhile. Rejects as `peer.stream` does. */
export function askForReview(
  peer: Peer,
  { commit, good, patch }: { commit: string; good: string; patch: Uint8Array },
  options: CallOptions,
  onPiece: (piece: Piece) => void = () => {},
) {
  return readStream(peer.stream(review, { commit, good, patch: toBase64(patch) }, options), onPiece)
}
