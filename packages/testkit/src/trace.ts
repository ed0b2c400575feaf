import { createHash } from 'node:crypto'

/** What happened in a run, in order, kept as a hash only: two runs are the same when their hashes are. */
export interface Trace {
  add(event: string): void
  /** Events so far. */
  readonly length: number
  /** SHA-256 over all events so far, in hex; more can be added afterwards. */
  hash(): string
}

export function createTrace(): Trace {
  const sha = createHash('sha256')
  let length = 0
  return {
    add(event) {
      length += 1
      // The length first, so that two events never hash like one that is their concatenation.
      sha.update(`${Buffer.byteLength(event)}:${event}`)
    },
    get length() {
      return length
    },
    hash: () => sha.copy().digest('hex'),
  }
}
