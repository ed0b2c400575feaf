import type { LogRecord } from './log-file.ts'

/**
 * Each group of commits begins with this entry: 8 bytes of chance that name the life, then the number of the group in it.
 * By it a group is found again in LevelDB's log, and bytes that a remote chose cannot pass for one.
 */
export const MARKER_KEY = '!group'
const LIFE_BYTES = 8
const MARKER_BYTES = LIFE_BYTES + 8

/** Sequence number and count of entries, before the entries of a batch. */
export const BATCH_HEADER = 12
const PUT = 1

export interface GroupMarkers {
  /** The value of the marker of that group. */
  value(number: number): Uint8Array
  /** Whether the record is that group. */
  isGroup(record: LogRecord, number: number): boolean
}

export function groupMarkers(life: Uint8Array): GroupMarkers {
  const value = (number: number): Buffer => {
    const bytes = Buffer.alloc(MARKER_BYTES)
    bytes.set(life.subarray(0, LIFE_BYTES))
    bytes.writeBigUInt64LE(BigInt(number), LIFE_BYTES)
    return bytes
  }
  return {
    value,
    isGroup(record, number) {
      const expected = Buffer.concat([SIGN, value(number)])
      return record.data.subarray(BATCH_HEADER, BATCH_HEADER + expected.length).equals(expected)
    },
  }
}

/** The marker as LevelDB encodes it, without its value. */
const SIGN = Buffer.concat([
  Buffer.from([PUT, MARKER_KEY.length]),
  Buffer.from(MARKER_KEY, 'latin1'),
  Buffer.from([MARKER_BYTES]),
])

/** What each group in the log of these records has behind its batch header: with the life, where one record tells it. */
export function signOf(records: readonly LogRecord[]): Buffer {
  const known = records.find(({ data }) => data.subarray(BATCH_HEADER, BATCH_HEADER + SIGN.length).equals(SIGN))
  return known ? known.data.subarray(BATCH_HEADER, BATCH_HEADER + SIGN.length + LIFE_BYTES) : SIGN
}

export const lifeOf = (bytes: (length: number) => Uint8Array): Uint8Array => bytes(LIFE_BYTES)
