export interface Tail {
  push(chunk: Uint8Array): void
  /** What is kept, as UTF-8; a character cut at the front shows as U+FFFD. */
  text(): string
}

/** Keeps the last `limit` bytes of what is pushed. */
export function createTail(limit: number): Tail {
  const chunks: Uint8Array[] = []
  let size = 0
  return {
    push(chunk) {
      chunks.push(chunk)
      size += chunk.length
      while (chunks[0] !== undefined && size - chunks[0].length >= limit) size -= (chunks.shift() as Uint8Array).length
    },
    text: () => Buffer.concat(chunks).subarray(-limit).toString('utf8'),
  }
}
