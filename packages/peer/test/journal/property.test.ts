import { rmSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createDiskJournal } from '../../src/journal/disk/disk-journal.ts'
import type { Journal, JournalTable } from '../../src/journal/journal.ts'
import { createMemoryStore } from '../../src/journal/memory-journal.ts'
import { createStoredJournal } from '../../src/journal/stored-journal.ts'
import { temporaryFolder } from '../identity/support.ts'

const TABLES: readonly JournalTable[] = ['tasks', 'updates', 'marks']
const KEYS = ['a', 'b', 'a/1', 'a/2', 'a/10', '~', ' ', 'a~']

const change = fc.record({
  table: fc.constantFrom(...TABLES),
  key: fc.constantFrom(...KEYS),
  value: fc.option(fc.uint8Array({ maxLength: 40 }), { nil: undefined }),
})
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ turn: fc.array(fc.array(change, { maxLength: 5 }), { minLength: 1, maxLength: 4 }) }),
  },
  { weight: 2, arbitrary: fc.record({ prefix: fc.constantFrom('', 'a', 'a/', 'a/1', 'z') }) },
  { weight: 1, arbitrary: fc.constant('reopen' as const) },
)

/** A sorted map per table: the model. */
type Model = Map<JournalTable, Map<string, string>>
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

async function agrees(journal: Journal, model: Model, prefix: string): Promise<void> {
  for (const table of TABLES) {
    const entries = model.get(table) ?? new Map<string, string>()
    const expected = [...entries].filter(([key]) => key.startsWith(prefix)).sort(([a], [b]) => (a < b ? -1 : 1))
    const found: [string, string][] = []
    for await (const [key, value] of journal.entries(table, prefix)) found.push([key, hex(value)])
    expect(found).toEqual(expected)
    for (const key of KEYS) {
      const value = await journal.get(table, key)
      expect(value && hex(value)).toBe(entries.get(key))
    }
  }
}

async function run(make: () => Journal, steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) {
  const model: Model = new Map()
  let journal = make()
  await journal.open()
  try {
    for (const one of steps) {
      if (one === 'reopen') {
        await journal.close()
        journal = make()
        await journal.open()
      } else if ('prefix' in one) {
        await agrees(journal, model, one.prefix)
      } else {
        await Promise.all(one.turn.map((changes) => journal.commit(changes)))
        for (const { table, key, value } of one.turn.flat()) {
          const entries = model.get(table) ?? new Map<string, string>()
          model.set(table, entries)
          if (value === undefined) entries.delete(key)
          else entries.set(key, hex(value))
        }
      }
    }
    await agrees(journal, model, '')
  } finally {
    await journal.close()
  }
}

describe('any commits, reads and lives agree with a map', () => {
  it('in memory', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const store = createMemoryStore()
        await run(() => createStoredJournal({ store }), steps)
      }),
      { numRuns: 150 },
    )
  })

  it('on disk', async () => {
    const folder = temporaryFolder()
    let count = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
        const own = join(folder, String(count++))
        await run(() => createDiskJournal({ folder: own, limits: { journalSpareBytes: 1 } }), steps)
        rmSync(own, { recursive: true })
      }),
      { numRuns: 25 },
    )
  })
})
