import type { Clock } from '../clock.ts'

/** Something that waits for its turn. */
export interface Waiting {
  /** 1..5 */
  readonly priority: number
  /** Monotonic ms. */
  readonly since: number
}

/**
 * Waiting work by priority, which rises by one level per `ageMs`. Within a priority first come is first served, so that nothing
 * overtakes its equals.
 */
export interface AgeingQueue<T extends Waiting> {
  push(item: T): void
  shift(): T | undefined
  remove(item: T): boolean
  readonly size: number
}

export function createAgeingQueue<T extends Waiting>({
  clock,
  ageMs,
}: {
  clock: Clock
  ageMs: number
}): AgeingQueue<T> {
  const levels: T[][] = [[], [], [], [], [], []]
  let size = 0
  return {
    push(item) {
      ;(levels[item.priority] as T[]).push(item)
      size++
    },
    shift() {
      const now = clock.monotonic()
      let best: T[] | undefined
      let bestRank = Number.NEGATIVE_INFINITY
      for (let level = 5; level >= 1; level--) {
        const head = levels[level]?.[0]
        if (!head) continue
        const rank = level + Math.floor((now - head.since) / ageMs)
        if (rank > bestRank || (rank === bestRank && head.since < (best?.[0]?.since ?? 0))) {
          best = levels[level]
          bestRank = rank
        }
      }
      const item = best?.shift()
      if (item) size--
      return item
    },
    remove(item) {
      const level = levels[item.priority] as T[]
      const at = level.indexOf(item)
      if (at < 0) return false
      level.splice(at, 1)
      size--
      return true
    },
    get size() {
      return size
    },
  }
}
