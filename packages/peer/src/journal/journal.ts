/** What is kept apart; each table has keys of its own. */
export type JournalTable = 'marks' | 'outbox' | 'tasks' | 'updates' | 'serials' | 'pins'

/** One key that is set, or removed where the value is undefined. */
export interface JournalChange {
  readonly table: JournalTable
  /** 1 to 256 printable ASCII characters. */
  readonly key: string
  readonly value: Uint8Array | undefined
}

/**
 * What must survive a restart. `memory` keeps it for one life only, `disk` in a folder; nothing above this folder
 * knows which one it runs on, but for `durable`, by which promises are worded.
 */
export interface Journal {
  /** False: what is stored ends with this life. */
  readonly durable: boolean
  /**
   * Makes it ready. Throws `JOURNAL_LOCKED` while another process has it open, `JOURNAL_CORRUPT`, `JOURNAL_NEWER` for
   * a format of a later version, and `STORAGE_FAILED`; each names the folder and what to do.
   */
  open(): Promise<void>
  /**
   * Resolves once all of the changes are stored, so that they outlive a kill; they are stored together or not at all.
   * All commits of one turn of the event loop share one write, in the order they were given. Rejects with
   * `STORAGE_FAILED`: then nothing of it is stored, and a later commit may succeed again; with `QUEUE_FULL` when too much
   * waits, and with `LIMIT_EXCEEDED` for a value or a commit that is too large. The bytes may be reused at once.
   */
  commit(changes: readonly JournalChange[]): Promise<void>
  /** What was stored last, commits that are still on their way excluded. */
  get(table: JournalTable, key: string): Promise<Uint8Array | undefined>
  /**
   * Entries whose key begins with `prefix` (default: all), in the order of their keys, each once. Read in pieces: what is
   * committed meanwhile may be seen or not.
   */
  entries(table: JournalTable, prefix?: string): AsyncIterable<readonly [key: string, value: Uint8Array]>
  /** Waits for what is on its way, then lets go of the folder; idempotent. Commits after it reject with `STOPPED`. */
  close(): Promise<void>
}
