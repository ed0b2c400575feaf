import { maskedCrc32c } from './crc32c.ts'
import { byteReader } from './varint.ts'

interface Handle {
  readonly offset: number
  readonly size: number
}

const FOOTER = 48
const MAGIC = Buffer.from('57fb808b247547db', 'hex')
/** Kind of compression and check, behind each block. */
const TRAILER = 5
/** Only blocks that are not compressed are looked into; this journal writes no others. */
const PLAIN = 0

/** What is wrong with a table of LevelDB, or nothing. Every block is read and compared with its check. */
export function tableFault(file: Buffer): string | undefined {
  if (file.length < FOOTER) return `has only ${file.length} bytes`
  const footer = file.subarray(file.length - FOOTER)
  if (!footer.subarray(FOOTER - MAGIC.length).equals(MAGIC)) return 'does not end as a table does'
  const reader = byteReader(footer)
  const roots = [handleAt(reader), handleAt(reader)]
  for (const root of roots) {
    if (!root) return 'has a footer that makes no sense'
    const fault = blockFault(file, root)
    if (fault) return fault
    if (file[root.offset + root.size] !== PLAIN) continue
    const handles = handlesIn(file.subarray(root.offset, root.offset + root.size))
    if (!handles) return `has an index at byte ${root.offset} that makes no sense`
    for (const handle of handles) {
      const wrong = blockFault(file, handle)
      if (wrong) return wrong
    }
  }
  return undefined
}

function blockFault(file: Buffer, { offset, size }: Handle): string | undefined {
  const end = offset + size
  if (end + TRAILER > file.length) return `points beyond its end (byte ${end})`
  if (file.readUInt32LE(end + 1) === maskedCrc32c(file, offset, end + 1)) return undefined
  return `is damaged between byte ${offset} and ${end + TRAILER}`
}

function handleAt(reader: ReturnType<typeof byteReader>): Handle | undefined {
  const offset = reader.varint()
  const size = reader.varint()
  return offset === undefined || size === undefined ? undefined : { offset, size }
}

/** An index block: entries of shared key length, new key bytes and value, then the list of restart points. */
function handlesIn(block: Buffer): Handle[] | undefined {
  if (block.length < 4) return undefined
  const end = block.length - 4 - 4 * block.readUInt32LE(block.length - 4)
  if (end < 0) return undefined
  const reader = byteReader(block.subarray(0, end))
  const handles: Handle[] = []
  while (!reader.done) {
    if (reader.varint() === undefined) return undefined
    const keyLength = reader.varint()
    const valueLength = reader.varint()
    if (!reader.bytes(keyLength)) return undefined
    const value = reader.bytes(valueLength)
    const handle = value && handleAt(byteReader(value))
    if (!handle) return undefined
    handles.push(handle)
  }
  return handles
}
