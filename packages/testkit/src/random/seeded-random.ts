import { createHash } from 'node:crypto'
import { HermesError } from '@hermes-peer/protocol'
import type { Random } from 'hermes-peer'
import { xoshiro128starstar } from './xoshiro.ts'

/** Randomness that is the same in each run with the same seed. Never for secrets. */
export interface SeededRandom extends Random {
  /** What leads to this stream: the seed, then the labels of the forks. */
  readonly path: string
  /** An independent stream. It depends on the seed and the labels alone, not on what was drawn: the same label gives the same stream. */
  fork(label: string): SeededRandom
  /** A number in [min, max). */
  between(min: number, max: number): number
  /** A whole number from min to max, both included. */
  int(min: number, max: number): number
  /** True with probability p. */
  chance(p: number): boolean
  /** One of the items. Throws `INVALID_OPTION` when there is none. */
  pick<T>(items: readonly T[]): T
  /** The items in another order, in a new array. */
  shuffle<T>(items: readonly T[]): T[]
}

export function seededRandom(seed: number | string): SeededRandom {
  return new XoshiroRandom(String(seed))
}

class XoshiroRandom implements SeededRandom {
  readonly path: string
  readonly #word: () => number

  constructor(path: string) {
    this.path = path
    const digest = createHash('sha256').update(path).digest()
    const word = (index: number) => digest.readUInt32LE(index * 4)
    // A digest that begins with 16 zero bytes would be needed for the one state that xoshiro cannot start from.
    this.#word = xoshiro128starstar([word(0), word(1), word(2), word(3)])
  }

  fork(label: string): SeededRandom {
    // Lengths keep ('a/b').fork('c') apart from ('a').fork('b/c').
    return new XoshiroRandom(`${this.path}/${label.length}:${label}`)
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    let word = 0
    for (let i = 0; i < length; i++) {
      word = i % 4 === 0 ? this.#word() : word >>> 8
      bytes[i] = word
    }
    return bytes
  }

  next(): number {
    return ((this.#word() >>> 5) * 2 ** 26 + (this.#word() >>> 6)) / 2 ** 53
  }

  between(min: number, max: number): number {
    return min + this.next() * (max - min)
  }

  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  chance(p: number): boolean {
    return this.next() < p
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) {
      throw new HermesError('INVALID_OPTION', { message: 'pick: items is empty', hint: 'Give at least one item.' })
    }
    return items[this.int(0, items.length - 1)] as T
  }

  shuffle<T>(items: readonly T[]): T[] {
    const shuffled = [...items]
    for (let last = shuffled.length - 1; last > 0; last--) {
      const other = this.int(0, last)
      const item = shuffled[last] as T
      shuffled[last] = shuffled[other] as T
      shuffled[other] = item
    }
    return shuffled
  }
}
