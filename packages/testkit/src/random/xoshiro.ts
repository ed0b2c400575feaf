/** Four 32-bit words, not all zero. */
export type Xoshiro128State = readonly [number, number, number, number]

/** xoshiro128** 1.1 by Blackman and Vigna (prng.di.unimi.it): whole numbers in [0, 2^32). Not for secrets. */
export function xoshiro128starstar(state: Xoshiro128State): () => number {
  let [a, b, c, d] = state
  return () => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotate(d, 11)
    return result
  }
}

function rotate(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by))
}
