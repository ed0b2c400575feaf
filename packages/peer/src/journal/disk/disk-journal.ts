import { resolve } from 'node:path'
import { HermesError } from '@hermes-peer/protocol'
import { DEFAULTS, type Tunables } from '../../defaults.ts'
import { type Random, systemRandom } from '../../random.ts'
import type { Journal } from '../journal.ts'
import { createStoredJournal, type JournalLimits } from '../stored-journal.ts'
import { createLevelStore } from './level-store.ts'

export interface DiskJournalOptions {
  /** Made with mode 0700 when it does not exist; nobody else may have files in it. One process at a time. */
  readonly folder: string
  /** Default: those of `DEFAULTS`. */
  readonly limits?: Partial<JournalLimits & Pick<Tunables, 'journalSpareBytes'>>
  readonly random?: Random
}

/**
 * Keeps what must survive a restart in a folder, by LevelDB with synchronous writes: what `commit` resolved for outlives a kill
 * and a power cut. Nothing is loaded or touched before `open`.
 *
 * `open` throws `STORAGE_FAILED` (no permission, no space, read only), `JOURNAL_LOCKED`, `JOURNAL_NEWER` and
 * `JOURNAL_CORRUPT`; then the files are as they were. While the disk is full or read only, commits reject with `STORAGE_FAILED`
 * and reading goes on; commits succeed again once there is room.
 */
export function createDiskJournal({ folder, limits = {}, random = systemRandom() }: DiskJournalOptions): Journal {
  if (typeof folder !== 'string' || folder === '') {
    throw new HermesError('INVALID_OPTION', {
      message: 'journal: folder must be the path of a folder',
      details: { field: 'folder' },
    })
  }
  const spareBytes = limits.journalSpareBytes ?? DEFAULTS.journalSpareBytes
  return createStoredJournal({ store: createLevelStore({ folder: resolve(folder), random, spareBytes }), limits })
}
