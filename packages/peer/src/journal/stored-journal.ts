import { HermesError } from '@hermes-peer/protocol'
import { DEFAULTS, type Tunables } from '../defaults.ts'
import { checkKey, checkPrefix, checkTable, ownChange } from './check-change.ts'
import type { Journal, JournalChange, JournalTable } from './journal.ts'
import type { JournalEntry, JournalStore } from './store.ts'

export type JournalLimits = Pick<Tunables, 'journalWaitingCommits' | 'journalWaitingBytes' | 'journalValueBytes'>

export interface StoredJournalOptions {
  readonly store: JournalStore
  /** Default: those of `DEFAULTS`. */
  readonly limits?: Partial<JournalLimits>
}

/**
 * A journal over a store: checks each commit, gathers those of one turn of the event loop into one write, keeps their
 * order, and refuses with `QUEUE_FULL` what would wait beyond the limits.
 */
export function createStoredJournal({ store, limits = {} }: StoredJournalOptions): Journal {
  return new StoredJournal(store, { ...DEFAULTS, ...limits })
}

interface Commit {
  readonly changes: readonly JournalChange[]
  readonly bytes: number
  readonly stored: () => void
  readonly failed: (error: unknown) => void
}

/** What an entry costs beside its key and value, in memory and on disk. */
const ENTRY_BYTES = 64

class StoredJournal implements Journal {
  readonly durable: boolean
  readonly #store: JournalStore
  readonly #limits: JournalLimits
  /** Gathered for the next write; bounded together with the write on its way. */
  #gathered: Commit[] = []
  #waitingCommits = 0
  #waitingBytes = 0
  #writing: Promise<void> | undefined
  #state: 'new' | 'open' | 'closed' = 'new'
  #opening: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(store: JournalStore, limits: JournalLimits) {
    this.durable = store.durable
    this.#store = store
    this.#limits = limits
  }

  async open(): Promise<void> {
    if (this.#closing !== undefined) throw stopped()
    this.#opening ??= this.#store.open().then(
      () => {
        this.#state = 'open'
      },
      (error: unknown) => {
        this.#opening = undefined
        throw error
      },
    )
    await this.#opening
  }

  async commit(changes: readonly JournalChange[]): Promise<void> {
    this.#demandOpen()
    const { journalValueBytes, journalWaitingBytes, journalWaitingCommits } = this.#limits
    const own = changes.map((change) => ownChange(change, journalValueBytes))
    const bytes = own.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0) + ENTRY_BYTES, 0)
    if (bytes > journalWaitingBytes) {
      throw new HermesError('LIMIT_EXCEEDED', {
        message: `journal: a commit of ${bytes} bytes, the limit is ${journalWaitingBytes}`,
        hint: 'Split it, or raise tuning.journalWaitingBytes.',
        details: { field: 'changes', size: bytes, limit: journalWaitingBytes },
      })
    }
    if (this.#waitingCommits >= journalWaitingCommits || this.#waitingBytes + bytes > journalWaitingBytes) {
      throw new HermesError('QUEUE_FULL', {
        message: `journal: ${this.#waitingCommits} commits with ${this.#waitingBytes} bytes wait to be stored`,
        hint: 'Commit again when earlier ones are stored; if this lasts, the disk is slower than the work that comes in.',
        details: { commits: this.#waitingCommits, bytes: this.#waitingBytes },
      })
    }
    await new Promise<void>((stored, failed) => {
      this.#waitingCommits++
      this.#waitingBytes += bytes
      this.#gathered.push({ changes: own, bytes, stored, failed })
      this.#writing ??= this.#write()
    })
  }

  async get(table: JournalTable, key: string): Promise<Uint8Array | undefined> {
    checkTable(table)
    checkKey(key)
    this.#demandOpen()
    return this.#store.get(table, key)
  }

  async *entries(table: JournalTable, prefix = ''): AsyncGenerator<JournalEntry> {
    checkTable(table)
    checkPrefix(prefix)
    let after: string | undefined
    for (;;) {
      this.#demandOpen()
      const page = await this.#store.page({ table, prefix, after })
      if (page.length === 0) return
      yield* page
      after = page.at(-1)?.[0]
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    // Whoever commits from here on is refused; what was given before is still stored.
    this.#state = 'closed'
    await this.#opening?.catch(() => undefined)
    this.#state = 'closed'
    while (this.#writing !== undefined) await this.#writing
    if (this.#opening !== undefined) await this.#store.close()
  }

  /** One write after the other: what is committed meanwhile gathers for the next one. */
  async #write(): Promise<void> {
    await endOfTurn()
    while (this.#gathered.length > 0) {
      const group = this.#gathered
      this.#gathered = []
      let failure: { error: unknown } | undefined
      try {
        await this.#store.write(group.flatMap(({ changes }) => changes))
      } catch (error) {
        failure = { error: HermesError.from(error, 'STORAGE_FAILED') }
      }
      for (const { bytes, stored, failed } of group) {
        this.#waitingCommits--
        this.#waitingBytes -= bytes
        if (failure) failed(failure.error)
        else stored()
      }
      // Those who were just told have their say before the next write begins.
      if (this.#gathered.length > 0) await endOfTurn()
    }
    this.#writing = undefined
  }

  #demandOpen(): void {
    if (this.#state === 'open') return
    if (this.#closing !== undefined) throw stopped()
    throw new HermesError('NOT_STARTED', { message: 'journal: it is not open', hint: 'Await open() first.' })
  }
}

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function stopped(): HermesError {
  return new HermesError('STOPPED', { message: 'journal: it has been closed', hint: 'Open a new one.' })
}
