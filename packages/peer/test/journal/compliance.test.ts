import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { journalCompliance } from '@hermes-peer/testkit'
import { describe, it } from 'vitest'
import { createDiskJournal } from '../../src/journal/disk/disk-journal.ts'
import { createMemoryJournal } from '../../src/journal/memory-journal.ts'
import { temporaryFolder } from '../identity/support.ts'

describe('a journal in memory', () => {
  const home = async () => ({
    journal: (limits = {}) => createMemoryJournal({ limits }),
    dispose: async () => undefined,
  })
  for (const { name, run } of journalCompliance(home)) it(name, run)
})

describe('a journal on disk', () => {
  const home = async () => {
    const folder = temporaryFolder()
    return {
      journal: (limits = {}) => createDiskJournal({ folder: join(folder, 'journal'), limits }),
      dispose: async () => rmSync(folder, { recursive: true }),
    }
  }
  for (const { name, run } of journalCompliance(home)) it(name, run)
})
