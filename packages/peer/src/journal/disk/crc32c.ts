/** Castagnoli, reflected: the check that LevelDB puts on each record and block. */
const POLYNOMIAL = 0x82f63b78

/** Four tables, so that four bytes are folded in at a time: a whole journal is checked when it is opened. */
const TABLES: readonly Uint32Array[] = makeTables()

function makeTables(): Uint32Array[] {
  const first = new Uint32Array(256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
    first[byte] = crc >>> 0
  }
  const tables = [first]
  for (let number = 1; number < 4; number++) {
    const before = tables[number - 1] as Uint32Array
    tables.push(before.map((crc) => (crc >>> 8) ^ (first[crc & 0xff] as number)))
  }
  return tables
}

/** CRC-32C of `bytes[from..to)`. */
export function crc32c(bytes: Uint8Array, from = 0, to = bytes.length): number {
  const [one, two, three, four] = TABLES as [Uint32Array, Uint32Array, Uint32Array, Uint32Array]
  let crc = 0xffffffff
  let at = from
  for (; at + 4 <= to; at += 4) {
    crc ^=
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)
    crc =
      (four[crc & 0xff] as number) ^
      (three[(crc >>> 8) & 0xff] as number) ^
      (two[(crc >>> 16) & 0xff] as number) ^
      (one[crc >>> 24] as number)
  }
  for (; at < to; at++) crc = (crc >>> 8) ^ (one[(crc ^ (bytes[at] as number)) & 0xff] as number)
  return (crc ^ 0xffffffff) >>> 0
}

/** As LevelDB stores it: turned and shifted, so that a check over data that holds checks stays sound. */
export function maskedCrc32c(bytes: Uint8Array, from?: number, to?: number): number {
  const crc = crc32c(bytes, from, to)
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0
}
