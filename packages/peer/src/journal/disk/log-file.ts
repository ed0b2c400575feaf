import { maskedCrc32c } from './crc32c.ts'

/** A record of a log: here one group of commits, in the manifest one change of it. */
export interface LogRecord {
  /** Where it begins in the file. */
  readonly start: number
  readonly data: Buffer
}

export interface LogContent {
  readonly records: readonly LogRecord[]
  /** Bytes up to the end of the last whole record. */
  readonly end: number
  /** Where something begins that is no whole record: a write that did not end, or damage. */
  readonly broken: number | undefined
}

/** LevelDB writes its logs in blocks; a record that does not fit is cut into fragments, a short rest is left empty. */
const BLOCK = 32_768
const HEADER = 7
const FULL = 1
const FIRST = 2
const LAST = 4

/** Reads as far as everything is sound. Never throws: what is wrong is told by `broken`. */
export function readLog(file: Buffer): LogContent {
  const records: LogRecord[] = []
  let end = 0
  let at = 0
  let open: { start: number; parts: Buffer[] } | undefined
  while (at < file.length) {
    const rest = BLOCK - (at % BLOCK)
    if (rest < HEADER) {
      at += rest
      continue
    }
    const fragment = readFragment(file, at)
    if (!fragment) break
    const { type, data } = fragment
    const begins = type === FULL || type === FIRST
    // An empty first fragment at the end of a block may be begun anew in the next one.
    if (begins && open?.parts.some(({ length }) => length > 0)) break
    if (begins) open = { start: at, parts: [] }
    if (!open) break
    open.parts.push(data)
    at += HEADER + data.length
    if (type === FULL || type === LAST) {
      records.push({ start: open.start, data: open.parts.length === 1 ? data : Buffer.concat(open.parts) })
      open = undefined
      end = at
    }
  }
  // The empty rest of a block, up to the end of the file, is no write that did not end.
  const whole = open === undefined && at >= file.length
  return { records, end, broken: whole ? undefined : (open?.start ?? at) }
}

/** The fragment at that place, when its check is right and it lies within its block. */
export function readFragment(file: Buffer, at: number): { type: number; data: Buffer } | undefined {
  if (at < 0 || at + HEADER > file.length) return undefined
  const type = file[at + 6] as number
  const length = file.readUInt16LE(at + 4)
  const end = at + HEADER + length
  if (type < FULL || type > LAST || (at % BLOCK) + HEADER + length > BLOCK || end > file.length) return undefined
  if (file.readUInt32LE(at) !== maskedCrc32c(file, at + 6, end)) return undefined
  return { type, data: file.subarray(at + HEADER, end) }
}

/** Whether a record begins at `from` or behind it whose data, after `before` bytes, is `sign`. */
export function hasRecordWith(file: Buffer, from: number, before: number, sign: Buffer): boolean {
  const ahead = HEADER + before
  for (let found = file.indexOf(sign, from + ahead); found >= 0; found = file.indexOf(sign, found + 1)) {
    const fragment = readFragment(file, found - ahead)
    if (fragment && (fragment.type === FULL || fragment.type === FIRST)) return true
  }
  return false
}

/** Whether the broken thing is a whole fragment up to the end of the file with only its length changed: no write cut short. */
export function hasChangedLength(file: Buffer, at: number): boolean {
  const there = file.length - at - HEADER
  // The first of several fragments, cut off right behind it, is as it was written.
  return (
    there > 0 &&
    file.readUInt16LE(at + 4) !== there &&
    file.readUInt32LE(at) === maskedCrc32c(file, at + 6, file.length)
  )
}

/** Whether any sound fragment begins in `file[from..]`. */
export function hasFragment(file: Buffer, from: number): boolean {
  for (let at = from; at + HEADER < file.length; at++) if (readFragment(file, at)) return true
  return false
}
