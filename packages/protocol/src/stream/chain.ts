import { fromHex, toHex } from '../bytes/parts.ts'
import { sha256 } from '../crypto/sha256.ts'
import { HermesError } from '../errors/hermes-error.ts'

/**
 * The running hash of one direction of a stream: h₀ is the leaf of the opening envelope, hᵢ = SHA-256(hᵢ₋₁ ‖ chunk i as
 * sent, its length included). Only data counts.
 */
export interface ChunkChain {
  /** Takes the next chunk. Throws `STREAM_BROKEN` when its index is not the next one. */
  add(index: number, chunk: Uint8Array): void
  /** Chunks so far, which is also the index of the last. */
  readonly count: number
  /** Lower-case hex. */
  readonly hash: string
  /** Throws `STREAM_BROKEN` when the end tells of other chunks than these. */
  check(end: { readonly count: number; readonly running_hash: string }): void
}

/** Begins at the leaf (hex) of the opening envelope. */
export function chunkChain(leaf: string): ChunkChain {
  let count = 0
  let hash = fromHex(leaf)
  return {
    add(index, chunk) {
      if (index !== count + 1) {
        throw new HermesError('STREAM_BROKEN', {
          message: `chunk ${index} came where ${count + 1} was due`,
          details: { index, due: count + 1 },
        })
      }
      count = index
      hash = sha256(hash, chunk)
    },
    get count() {
      return count
    },
    get hash() {
      return toHex(hash)
    },
    check(end) {
      if (end.count !== count) {
        throw new HermesError('STREAM_BROKEN', {
          message: `${count} chunks came, the end tells of ${end.count}`,
          details: { count, told: end.count },
        })
      }
      if (end.running_hash !== toHex(hash)) {
        throw new HermesError('STREAM_BROKEN', { message: 'the chunks are not those that the end was signed for' })
      }
    },
  }
}
