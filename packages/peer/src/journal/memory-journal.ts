import { HermesError } from '@hermes-peer/protocol'
import type { Journal, JournalTable } from './journal.ts'

/** A journal for peers without a disk: its promises hold for one life. */
export function createMemoryJournal(): Journal {
  const tables = new Map<JournalTable, Map<string, Uint8Array>>()
  let closed = false
  const tableOf = (table: JournalTable): Map<string, Uint8Array> => {
    const found = tables.get(table) ?? new Map<string, Uint8Array>()
    tables.set(table, found)
    return found
  }
  return {
    durable: false,
    open: async () => undefined,
    async commit(changes) {
      if (closed) throw new HermesError('STOPPED', { message: 'the journal is closed' })
      for (const { table, key, value } of changes) {
        if (value) tableOf(table).set(key, value)
        else tableOf(table).delete(key)
      }
    },
    get: async (table, key) => tableOf(table).get(key),
    async *entries(table, prefix = '') {
      const keys = [...tableOf(table).keys()].filter((key) => key.startsWith(prefix)).sort()
      for (const key of keys) {
        const value = tableOf(table).get(key)
        if (value) yield [key, value] as const
      }
    },
    async close() {
      closed = true
    },
  }
}
