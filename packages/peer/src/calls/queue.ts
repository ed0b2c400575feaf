import type { Clock } from '../clock.ts'

/** Something that waits for its turn. */
export interface Waiting {
  /** 1..5 */
  readonly priority: number
  /** Monotonic ms. */
  readonly since: number
  /** Who asked for it; absent where all is one's own. */
  readonly sender?: string
}

/**
 * Waiting work by priority, which rises by one level per `ageMs`, counted by what waits longest there. Within a priority
 * senders take turns, so that one that asks for much holds up nobody else; of one sender first come is first served, so that
 * nothing overtakes its equals. Whoever fills it bounds it.
 */
export interface AgeingQueue<T extends Waiting> {
  push(item: T): void
  /** What `shift` would give. */
  peek(): T | undefined
  shift(): T | undefined
  remove(item: T): boolean
  readonly size: number
}

/** What waits on one priority by sender; whose turn is next stands first. */
type Level<T> = Map<string, T[]>

const senderOf = (item: Waiting): string => item.sender ?? ''

export function createAgeingQueue<T extends Waiting>({
  clock,
  ageMs,
}: {
  clock: Clock
  ageMs: number
}): AgeingQueue<T> {
  const levels: Level<T>[] = [1, 2, 3, 4, 5].map(() => new Map())
  const levelOf = (item: T) => levels[item.priority - 1] as Level<T>
  let size = 0

  const best = (): Level<T> | undefined => {
    const now = clock.monotonic()
    let found: Level<T> | undefined
    let foundRank = Number.NEGATIVE_INFINITY
    let foundSince = 0
    for (let priority = 5; priority >= 1; priority--) {
      const level = levels[priority - 1] as Level<T>
      if (level.size === 0) continue
      let since = Number.POSITIVE_INFINITY
      for (const [head] of level.values()) since = Math.min(since, (head as T).since)
      const rank = priority + Math.floor((now - since) / ageMs)
      if (rank < foundRank || (rank === foundRank && since >= foundSince)) continue
      found = level
      foundRank = rank
      foundSince = since
    }
    return found
  }

  const first = (level: Level<T> | undefined): T[] | undefined => level?.values().next().value

  return {
    push(item) {
      const level = levelOf(item)
      const own = level.get(senderOf(item))
      if (own) own.push(item)
      else level.set(senderOf(item), [item])
      size++
    },
    peek: () => first(best())?.[0],
    shift() {
      const level = best()
      const own = first(level)
      const item = own?.shift()
      if (!level || !own || !item) return undefined
      size--
      level.delete(senderOf(item))
      if (own.length > 0) level.set(senderOf(item), own)
      return item
    },
    remove(item) {
      const level = levelOf(item)
      const own = level.get(senderOf(item))
      const at = own?.indexOf(item) ?? -1
      if (!own || at < 0) return false
      own.splice(at, 1)
      if (own.length === 0) level.delete(senderOf(item))
      size--
      return true
    },
    get size() {
      return size
    },
  }
}
