import type { WorkRecord } from '../../src/delivery/dedup.ts'

export interface Limits {
  readonly idsPerSender: number
  readonly bytesPerSender: number
  readonly idsPerNode: number
}

interface Entry {
  sender: string
  id: string
  state: WorkRecord['state']
  expiresAt: number
  bytes: number
  /** When it was settled, counted in settlings; 0 while it is not. */
  settledAs: number
}

/** What a deduplication memory must hold, as a plain list: slow, and easy to see through. */
export class DedupModel {
  readonly #limits: Limits
  #entries: Entry[] = []
  #settlings = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  get entries(): readonly Readonly<Entry>[] {
    return this.#entries
  }

  find(sender: string, id: string): Entry | undefined {
    return this.#entries.find((entry) => entry.sender === sender && entry.id === id)
  }

  /** Whether there is room, made if need be by forgetting what is settled of this sender. */
  begin(sender: string, id: string, expiresAt: number): boolean {
    if (this.#of(sender).length >= this.#limits.idsPerSender && !this.#forgetOldest(sender)) return false
    if (this.#entries.length >= this.#limits.idsPerNode && !this.#forgetOldest(sender) && !this.#forgetOfLargest())
      return false
    if (this.#bytes(sender) > this.#limits.bytesPerSender) return false
    this.#entries.push({ sender, id, state: 'waiting', expiresAt, bytes: 0, settledAs: 0 })
    return true
  }

  start(entry: Readonly<Entry>): void {
    this.#own(entry).state = 'running'
  }

  withdraw(entry: Readonly<Entry>): void {
    this.#entries = this.#entries.filter((other) => other !== entry)
  }

  finish(entry: Readonly<Entry>, bytes: number): void {
    const own = this.#own(entry)
    own.state = 'done'
    own.bytes = bytes
    this.#shrink(entry.sender)
  }

  settle(entry: Readonly<Entry>): void {
    const own = this.#own(entry)
    if (own.settledAs === 0) own.settledAs = ++this.#settlings
    this.#shrink(entry.sender)
  }

  /** Whether the promise can be given that the id will not be started. */
  refuse(sender: string, id: string, expiresAt: number): boolean {
    const known = this.find(sender, id)
    if (known) {
      known.expiresAt = Math.max(known.expiresAt, expiresAt)
      return known.state === 'refused'
    }
    if (!this.begin(sender, id, expiresAt)) return false
    const entry = this.find(sender, id) as Entry
    entry.state = 'refused'
    return true
  }

  sweep(now: number): void {
    this.#entries = this.#entries.filter(
      ({ expiresAt, state }) => expiresAt >= now || state === 'running' || state === 'waiting',
    )
  }

  #own({ sender, id }: Readonly<Entry>): Entry {
    return this.find(sender, id) as Entry
  }

  #of(sender: string): Entry[] {
    return this.#entries.filter((entry) => entry.sender === sender)
  }

  #bytes(sender: string): number {
    return this.#of(sender).reduce((sum, { bytes }) => sum + bytes, 0)
  }

  #shrink(sender: string): void {
    while (this.#bytes(sender) > this.#limits.bytesPerSender && this.#forgetOldest(sender)) {
      // Until the share fits, or nothing of it may be forgotten.
    }
  }

  /** Of whoever has most, among those who have something settled. */
  #forgetOfLargest(): boolean {
    const senders = [...new Set(this.#entries.filter(({ settledAs }) => settledAs > 0).map(({ sender }) => sender))]
    const [largest] = senders.sort((a, b) => this.#of(b).length - this.#of(a).length || (a < b ? -1 : 1))
    return largest !== undefined && this.#forgetOldest(largest)
  }

  #forgetOldest(sender: string): boolean {
    const settled = this.#of(sender).filter(({ settledAs }) => settledAs > 0)
    const [oldest] = settled.sort((a, b) => a.settledAs - b.settledAs)
    if (!oldest) return false
    this.withdraw(oldest)
    return true
  }
}
