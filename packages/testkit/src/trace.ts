import { createHash } from 'node:crypto'

/** What happened in a run, in order, kept as a hash only: two runs are the same when their hashes are. */
export interface Trace {
  add(event: string): void
  /** Events so far. */
  readonly length: number
  /** SHA-256 over all events so far, in hex; more can be added afterwards. */
  hash(): string
}

/** Characters put together before they are hashed: one event alone costs more to hand over than to hash. */
const BATCH = 16_384

export function createTrace(): Trace {
  const sha = createHash('sha256')
  let length = 0
  let waiting = ''
  const flush = (): void => {
    sha.update(waiting)
    waiting = ''
  }
  return {
    add(event) {
      length += 1
      // The length first, so that two events never hash like one that is their concatenation.
      waiting += `${event.length}:${event}`
      if (waiting.length > BATCH) flush()
    },
    get length() {
      return length
    },
    hash() {
      flush()
      return sha.copy().digest('hex')
    },
  }
}
