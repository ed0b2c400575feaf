import type { JournalChange, JournalTable } from './journal.ts'

/** One table from `prefix` on, or from behind the key `after` where the page before ended. */
export interface JournalPage {
  readonly table: JournalTable
  readonly prefix: string
  readonly after: string | undefined
}

export type JournalEntry = readonly [key: string, value: Uint8Array]

/**
 * Where a journal keeps its entries. The journal above it checks, groups, orders and bounds: a store sees one write at a
 * time, and nothing before `open` or after `close`.
 */
export interface JournalStore {
  readonly durable: boolean
  /** Leaves nothing open behind when it rejects, so that it can be tried again. */
  open(): Promise<void>
  /** All of the changes, in their order, or none; stored once it resolves. */
  write(changes: readonly JournalChange[]): Promise<void>
  get(table: JournalTable, key: string): Promise<Uint8Array | undefined>
  /** Some of the next entries in the order of their keys; empty when there are no more. */
  page(request: JournalPage): Promise<readonly JournalEntry[]>
  close(): Promise<void>
}
