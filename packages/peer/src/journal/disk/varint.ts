/** Reads the little-endian numbers of LevelDB's files; undefined where the bytes end or make no sense. */
export interface ByteReader {
  readonly at: number
  readonly done: boolean
  varint(): number | undefined
  bytes(length: number | undefined): Buffer | undefined
}

export function byteReader(data: Buffer, from = 0): ByteReader {
  let at = from
  return {
    get at() {
      return at
    },
    get done() {
      return at >= data.length
    },
    varint() {
      let value = 0
      for (let factor = 1; factor <= 2 ** 49; factor *= 128) {
        const byte = data[at++]
        if (byte === undefined) return undefined
        value += (byte & 127) * factor
        if (byte < 128) return value
      }
      return undefined
    },
    bytes(length) {
      if (length === undefined || at + length > data.length) return undefined
      at += length
      return data.subarray(at - length, at)
    },
  }
}
