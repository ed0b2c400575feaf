/** What a heap orders: by time, and by creation where times are equal. */
export interface HeapEntry {
  readonly at: number
  readonly order: number
  /** Kept by the heap: where the entry lies, -1 when it is not in it. */
  index: number
}

/** A binary min-heap that can also give up an entry from its middle, so that cancelled timers do not pile up. */
export interface TimerHeap<T extends HeapEntry> {
  readonly size: number
  peek(): T | undefined
  pop(): T | undefined
  push(entry: T): void
  /** False when the entry was not in the heap. */
  remove(entry: T): boolean
}

export function createTimerHeap<T extends HeapEntry>(): TimerHeap<T> {
  return new BinaryHeap<T>()
}

class BinaryHeap<T extends HeapEntry> implements TimerHeap<T> {
  readonly #entries: T[] = []

  get size(): number {
    return this.#entries.length
  }

  peek(): T | undefined {
    return this.#entries[0]
  }

  pop(): T | undefined {
    const first = this.#entries[0]
    if (first) this.remove(first)
    return first
  }

  push(entry: T): void {
    this.#entries.push(entry)
    this.#rise(entry, this.#entries.length - 1)
  }

  remove(entry: T): boolean {
    const index = entry.index
    if (this.#entries[index] !== entry) return false
    entry.index = -1
    const last = this.#entries.pop() as T
    if (last !== entry) this.#sink(last, this.#rise(last, index))
    return true
  }

  #rise(entry: T, from: number): number {
    let index = from
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = this.#entries[above] as T
      if (before(parent, entry)) break
      this.#place(parent, index)
      index = above
    }
    this.#place(entry, index)
    return index
  }

  #sink(entry: T, from: number): void {
    let index = from
    for (;;) {
      let below = 2 * index + 1
      let child = this.#entries[below]
      if (!child) break
      const right = this.#entries[below + 1]
      if (right && before(right, child)) {
        child = right
        below += 1
      }
      if (before(entry, child)) break
      this.#place(child, index)
      index = below
    }
    this.#place(entry, index)
  }

  #place(entry: T, index: number): void {
    this.#entries[index] = entry
    entry.index = index
  }
}

function before(a: HeapEntry, b: HeapEntry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
