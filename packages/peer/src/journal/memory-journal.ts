import type { Journal, JournalChange, JournalTable } from './journal.ts'
import type { JournalEntry, JournalPage, JournalStore } from './store.ts'
import { createStoredJournal, type JournalLimits } from './stored-journal.ts'

export interface MemoryJournalOptions {
  readonly limits?: Partial<JournalLimits>
}

/** For peers without a disk: the same promises, for one life only. */
export function createMemoryJournal({ limits = {} }: MemoryJournalOptions = {}): Journal {
  return createStoredJournal({ store: createMemoryStore(), limits })
}

/** Keeps its entries as long as the object lives, also beyond `close`. */
export function createMemoryStore(): JournalStore {
  return new MemoryStore()
}

/** Entries handed out at a time; the order is made anew for each page only when keys have come or gone. */
const PAGE_ENTRIES = 256

class MemoryStore implements JournalStore {
  readonly durable = false
  readonly #tables = new Map<JournalTable, Map<string, Uint8Array>>()
  readonly #sorted = new Map<JournalTable, string[]>()

  async open(): Promise<void> {}

  async write(changes: readonly JournalChange[]): Promise<void> {
    for (const { table, key, value } of changes) {
      const entries = this.#tables.get(table) ?? new Map<string, Uint8Array>()
      this.#tables.set(table, entries)
      if (entries.has(key) !== (value !== undefined)) this.#sorted.delete(table)
      if (value === undefined) entries.delete(key)
      else entries.set(key, value)
    }
  }

  async get(table: JournalTable, key: string): Promise<Uint8Array | undefined> {
    return this.#tables.get(table)?.get(key)?.slice()
  }

  async page({ table, prefix, after }: JournalPage): Promise<readonly JournalEntry[]> {
    const entries = this.#tables.get(table)
    if (!entries) return []
    let keys = this.#sorted.get(table)
    if (!keys) {
      keys = [...entries.keys()].sort()
      this.#sorted.set(table, keys)
    }
    const from = firstBehind(keys, after ?? prefix, after !== undefined)
    const page: JournalEntry[] = []
    for (const key of keys.slice(from, from + PAGE_ENTRIES)) {
      if (!key.startsWith(prefix)) break
      page.push([key, (entries.get(key) as Uint8Array).slice()])
    }
    return page
  }

  async close(): Promise<void> {}
}

/** Index of the first key that is not before `key`, or that is behind it. */
function firstBehind(keys: readonly string[], key: string, excluded: boolean): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = keys[middle] as string
    if (other < key || (excluded && other === key)) low = middle + 1
    else high = middle
  }
  return low
}
