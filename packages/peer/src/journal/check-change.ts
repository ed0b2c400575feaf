import { HermesError } from '@hermes-peer/protocol'
import type { JournalChange, JournalTable } from './journal.ts'

/** Ids and agent names with something before them; LevelDB keeps keys in memory. */
export const LONGEST_KEY = 256

const TABLES: ReadonlySet<string> = new Set<JournalTable>(['marks', 'outbox', 'tasks', 'updates', 'serials', 'pins'])
const KEY = /^[\x20-\x7e]{1,256}$/

/** Throws `INVALID_OPTION` that names the field: only code of this process chooses tables and keys. */
export function checkTable(table: unknown): void {
  if (typeof table === 'string' && TABLES.has(table)) return
  throw new HermesError('INVALID_OPTION', {
    message: `journal: table ${JSON.stringify(table)?.slice(0, 40)} does not exist; there are ${[...TABLES].join(', ')}`,
    details: { field: 'table' },
  })
}

export function checkKey(key: unknown): void {
  if (typeof key === 'string' && KEY.test(key)) return
  throw new HermesError('INVALID_OPTION', {
    message: `journal: key ${JSON.stringify(key)?.slice(0, 80)} must be 1 to ${LONGEST_KEY} printable ASCII characters`,
    details: { field: 'key' },
  })
}

export function checkPrefix(prefix: unknown): void {
  if (prefix === '') return
  checkKey(prefix)
}

/**
 * A change with bytes of its own, so that what the caller does with its array later changes nothing. Throws
 * `INVALID_OPTION` for table, key and type of the value, `LIMIT_EXCEEDED` for a value over `most` bytes.
 */
export function ownChange({ table, key, value }: JournalChange, most: number): JournalChange {
  checkTable(table)
  checkKey(key)
  if (value === undefined) return { table, key, value }
  if (!(value instanceof Uint8Array)) {
    throw new HermesError('INVALID_OPTION', {
      message: `journal: value of ${table} ${key} must be bytes, or undefined to remove it`,
      details: { field: 'value' },
    })
  }
  if (value.length > most) {
    throw new HermesError('LIMIT_EXCEEDED', {
      message: `journal: value of ${table} ${key} has ${value.length} bytes, the limit is ${most}`,
      hint: 'Keep it under several keys, or raise tuning.journalValueBytes.',
      details: { field: 'value', size: value.length, limit: most },
    })
  }
  return { table, key, value: value.slice() }
}
