import type { SeededRandom } from '../random/seeded-random.ts'

/** Largest piece that travels at once, as yamux sends it. */
const MAX_SEGMENT = 64 * 1024
/** Chances that a piece is cut in two somewhere, or begins with a few single bytes: where parsers of streams go wrong. */
const TWO_PIECES = 0.2
const TINY_PIECES = 0.1
const MAX_TINY = 16

/** How many of the first `length` bytes travel as one piece. */
export function segmentLength(length: number, random: SeededRandom): number {
  const most = Math.min(length, MAX_SEGMENT)
  if (most < 2) return most
  const draw = random.next()
  if (draw < TINY_PIECES) return random.int(1, Math.min(most, MAX_TINY))
  if (draw < TINY_PIECES + TWO_PIECES) return random.int(1, most)
  return most
}
