/** Messages of kad-dht as they travel, written by hand: what a hostile peer sends is not what a library would. */
const varint = (value: number): number[] => {
  const bytes: number[] = []
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return [...bytes, left]
    bytes.push((left % 128) | 0x80)
  }
}
const bytesField = (field: number, value: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(value.length)]), value])
const framed = (message: Buffer): Buffer => Buffer.concat([Buffer.from(varint(message.length)), message])

/** ADD_PROVIDER: this peer provides what that multihash names. */
export function addProvider(multihash: Uint8Array, peer: { id: Uint8Array; addresses: readonly Uint8Array[] }): Buffer {
  const provider = Buffer.concat([bytesField(1, peer.id), ...peer.addresses.map((one) => bytesField(2, one))])
  return framed(Buffer.concat([Buffer.from([8, 2]), bytesField(2, multihash), bytesField(9, provider)]))
}

/** PUT_VALUE of a record under its key. */
export function putValue(key: string, value: Uint8Array): Buffer {
  const name = Buffer.from(key)
  const record = Buffer.concat([
    bytesField(1, name),
    bytesField(2, value),
    bytesField(5, Buffer.from(new Date().toISOString())),
  ])
  return framed(Buffer.concat([Buffer.from([8, 0]), bytesField(2, name), bytesField(3, record)]))
}
