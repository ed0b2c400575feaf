import { createHash, hash } from 'node:crypto'

/** SHA-256 as lower-case hex. The one-shot call is two to three times as fast as a hash object for small inputs. */
export function sha256Hex(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex')
}

/** SHA-256 of bytes that come one piece after another; `digest` ends it, lower-case hex. */
export function sha256Pieces(): { add(piece: Uint8Array): void; digest(): string } {
  const state = createHash('sha256')
  return { add: (piece) => void state.update(piece), digest: () => state.digest('hex') }
}

export function sha256(...pieces: readonly Uint8Array[]): Uint8Array {
  const state = createHash('sha256')
  for (const piece of pieces) state.update(piece)
  return new Uint8Array(state.digest())
}
