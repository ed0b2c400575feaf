import { byteReader } from './varint.ts'

/** What LevelDB's manifest says is in use. */
export interface Manifest {
  /** Numbers of the tables. */
  readonly tables: ReadonlySet<number>
  /** The oldest log that is still needed; 0 before there is one. */
  readonly logNumber: number
}

const COMPARATOR = 1
const LOG_NUMBER = 2
const NEXT_FILE = 3
const LAST_SEQUENCE = 4
const COMPACT_POINTER = 5
const DELETED_FILE = 6
const NEW_FILE = 7
const PREVIOUS_LOG = 9

/** Adds up the changes; undefined when one of them makes no sense. */
export function readManifest(changes: readonly Buffer[]): Manifest | undefined {
  const tables = new Set<number>()
  let logNumber = 0
  for (const change of changes) {
    const reader = byteReader(change)
    const text = () => reader.bytes(reader.varint())
    while (!reader.done) {
      switch (reader.varint()) {
        case COMPARATOR:
          if (!text()) return undefined
          break
        case LOG_NUMBER: {
          const number = reader.varint()
          if (number === undefined) return undefined
          logNumber = number
          break
        }
        case NEXT_FILE:
        case LAST_SEQUENCE:
        case PREVIOUS_LOG:
          if (reader.varint() === undefined) return undefined
          break
        case COMPACT_POINTER:
          if (reader.varint() === undefined || !text()) return undefined
          break
        case DELETED_FILE: {
          reader.varint()
          const number = reader.varint()
          if (number === undefined) return undefined
          tables.delete(number)
          break
        }
        case NEW_FILE: {
          reader.varint()
          const number = reader.varint()
          if (number === undefined || reader.varint() === undefined || !text() || !text()) return undefined
          tables.add(number)
          break
        }
        default:
          return undefined
      }
    }
  }
  return { tables, logNumber }
}
