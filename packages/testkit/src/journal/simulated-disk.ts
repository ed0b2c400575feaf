import { HermesError } from '@hermes-peer/protocol'
import {
  type Clock,
  createMemoryStore,
  createStoredJournal,
  type Journal,
  type JournalChange,
  type JournalLimits,
  type JournalStore,
} from 'hermes-peer'
import type { SeededRandom } from '../random/seeded-random.ts'

/** What a disk can suffer from: no space left, or mounted for reading only. Reading goes on in both. */
export type DiskFault = 'full' | 'readOnly'

export interface SimulatedDiskOptions {
  /** Decides how long each write takes, and what a crash leaves of the one on its way. */
  random: SeededRandom
  /** How long a write takes, ms of the clock. Default 0.2 to 5. */
  writeMs?: { min: number; max: number }
}

/** The disk of a simulated machine: it outlives the journals that are opened on it, one after the other. */
export interface SimulatedDisk {
  /** A journal on it for one life, that life's clock telling how long writes take. Opened while another one is: `JOURNAL_LOCKED`. */
  journal(options: { clock: Clock; limits?: Partial<JournalLimits> }): Journal
  /**
   * The machine loses its power: the write on its way is wholly stored or wholly lost, by the seed; what waited behind it is
   * lost. The journal that was open never answers again.
   */
  crash(): void
  /** From now on writes fail so, with `STORAGE_FAILED`; undefined: they succeed again. */
  fail(fault: DiskFault | undefined): void
  /** Writes so far. `torn`: on their way at a crash; those of them that were stored count as stored too. */
  readonly writes: { readonly stored: number; readonly failed: number; readonly torn: number; readonly lost: number }
}

export function createSimulatedDisk({ random, writeMs = { min: 0.2, max: 5 } }: SimulatedDiskOptions): SimulatedDisk {
  const kept = createMemoryStore()
  const writes = { stored: 0, failed: 0, torn: 0, lost: 0 }
  let fault: DiskFault | undefined
  /** The life that has it open. */
  let owner: object | undefined
  let onItsWay: readonly JournalChange[] | undefined

  const store = async (changes: readonly JournalChange[]): Promise<void> => {
    onItsWay = undefined
    writes.stored++
    await kept.write(changes)
  }

  const storeOf = (clock: Clock): JournalStore => {
    const life = {}
    const alive = async <T>(run: () => Promise<T>): Promise<T> => (owner === life ? run() : never())
    return {
      durable: true,
      async open() {
        if (owner !== undefined) {
          throw new HermesError('JOURNAL_LOCKED', { message: 'journal: the simulated disk is open in another life' })
        }
        owner = life
      },
      write: (changes) =>
        alive(async () => {
          onItsWay = changes
          await new Promise<void>((resolve) => clock.after(random.between(writeMs.min, writeMs.max), resolve))
          if (owner !== life) return never()
          if (fault === undefined) return store(changes)
          onItsWay = undefined
          writes.failed++
          throw failed(fault)
        }),
      get: (table, key) => alive(() => kept.get(table, key)),
      page: (request) => alive(() => kept.page(request)),
      async close() {
        if (owner === life) owner = undefined
      },
    }
  }

  return {
    writes,
    journal: ({ clock, limits = {} }) => createStoredJournal({ store: storeOf(clock), limits }),
    crash() {
      const torn = onItsWay
      owner = undefined
      onItsWay = undefined
      if (torn === undefined) return
      writes.torn++
      // The memory below takes it before anyone can open the next life's journal.
      if (fault === undefined && random.chance(0.5)) void store(torn)
      else writes.lost++
    },
    fail(next) {
      fault = next
    },
  }
}

function never(): Promise<never> {
  return new Promise(() => {})
}

function failed(fault: DiskFault): HermesError {
  return new HermesError('STORAGE_FAILED', {
    message: `journal: the simulated disk ${fault === 'full' ? 'has no space left' : 'can only be read'}`,
    hint: 'It lasts until fail(undefined).',
    details: { fault },
  })
}
