import { LIMITS, type MessageType, sha256Hex } from '@hermes-peer/protocol'
import type { Incoming } from './inbox.ts'

/** How a started handler ended: the type and payload of its answer, in the form it is sent. */
export interface Outcome {
  readonly messageType: 'response' | 'error'
  readonly contentType: 'application/json' | 'application/msgpack'
  readonly payload: Uint8Array
}

/** What makes two envelopes the same piece of work. */
export interface WorkKey {
  readonly messageType: MessageType
  readonly capability: string | undefined
  readonly payloadSha256: string
}

/** One piece of work of one sender. */
export interface WorkRecord extends WorkKey {
  readonly messageId: string
  /** Wall clock, ms, tolerance included: kept until then. */
  expiresAt: number
  /** `forwarded`: another agent has it now, and answers for it. */
  state: 'refused' | 'waiting' | 'running' | 'done' | 'forwarded'
  outcome: Outcome | undefined
  /** Leaves of the attempts that wait for the answer. */
  waiters: string[]
  settled: boolean
  /** The neighbour that an answer goes back to, by leaf, for attempts that came over hops. */
  back?: Map<string, string>
  /** The attempt that joined last: handed on too when the work is. */
  latest?: Incoming | undefined
  /** The agent that it was handed on to, and the life of it. */
  next?: { readonly agentId: string; readonly epoch: number }
  /** A streaming call: it has no outcome to give again. */
  stream?: boolean
  /** SHA-256 of an answer over 1 MiB, which is not kept. */
  digest?: string
}

export interface DedupOptions {
  readonly now: () => number
  readonly idsPerSender: number
  readonly bytesPerSender: number
  readonly idsPerNode: number
}

/** Remembers which work of which sender was started, and how it ended. */
export interface Dedup {
  find(sender: string, messageId: string): WorkRecord | undefined
  /** A new record, or undefined when the sender's share (or the node's) is full of unsettled ones: then `BUSY`. */
  begin(sender: string, messageId: string, key: WorkKey, expiresAt: number, leaf: string): WorkRecord | undefined
  /** Takes back a record whose handler was never started. */
  withdraw(sender: string, record: WorkRecord): void
  finish(sender: string, record: WorkRecord, outcome: Outcome): void
  /** The answer is known to have arrived. */
  settle(sender: string, record: WorkRecord): void
  /**
   * The answer is known to have come to the neighbour that hands it back. Whether it arrives nobody tells: that the work was done
   * stays remembered, but where room is short only the digest of its answer.
   */
  passed(sender: string, record: WorkRecord): void
  /** Promises that this id will not be started before it expires; false when there is no room for the promise. */
  refuse(sender: string, messageId: string, expiresAt: number): boolean
  /** Drops what has expired. */
  sweep(): void
  readonly size: number
}

interface Share {
  records: Map<string, WorkRecord>
  /** Settled records, oldest first from `head` on: these may be forgotten early. A map's iterator would walk over its own holes. */
  settled: WorkRecord[]
  head: number
  /** Unsettled ones whose answers were handed back over hops, oldest first. */
  passed: Set<WorkRecord>
  bytes: number
}

export function createDedup(options: DedupOptions): Dedup {
  return new WorkMemory(options)
}

class WorkMemory implements Dedup {
  readonly #options: DedupOptions
  /** Bounded by `idsPerNode`: a share without records is removed. */
  readonly #shares = new Map<string, Share>()
  #size = 0

  constructor(options: DedupOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#size
  }

  find(sender: string, messageId: string): WorkRecord | undefined {
    const record = this.#shares.get(sender)?.records.get(messageId)
    // An expired record may stand until the next sweep; an envelope that could ask for it is refused as expired before.
    return record
  }

  begin(sender: string, messageId: string, key: WorkKey, expiresAt: number, leaf: string): WorkRecord | undefined {
    const share = this.#room(sender)
    if (!share) return undefined
    const record: WorkRecord = {
      messageType: key.messageType,
      capability: key.capability,
      payloadSha256: key.payloadSha256,
      messageId,
      expiresAt,
      state: 'waiting',
      outcome: undefined,
      waiters: [leaf],
      settled: false,
    }
    share.records.set(messageId, record)
    this.#size++
    return record
  }

  withdraw(sender: string, record: WorkRecord): void {
    this.#remove(sender, record)
  }

  finish(sender: string, record: WorkRecord, outcome: Outcome): void {
    record.state = 'done'
    if (outcome.payload.length > LIMITS.envelope) {
      // Remembered by its digest only: one such answer would be the whole share of its sender.
      record.digest = sha256Hex(outcome.payload)
      return
    }
    record.outcome = outcome
    const share = this.#shares.get(sender)
    if (!share?.records.has(record.messageId)) return
    share.bytes += outcome.payload.length
    this.#shrink(sender, share)
  }

  settle(sender: string, record: WorkRecord): void {
    const share = this.#shares.get(sender)
    if (record.settled || !share?.records.has(record.messageId)) return
    record.settled = true
    share.passed.delete(record)
    share.settled.push(record)
    this.#shrink(sender, share)
  }

  passed(sender: string, record: WorkRecord): void {
    const share = this.#shares.get(sender)
    if (record.settled || !record.outcome || share?.records.get(record.messageId) !== record) return
    share.passed.add(record)
    this.#shrink(sender, share)
  }

  refuse(sender: string, messageId: string, expiresAt: number): boolean {
    const known = this.find(sender, messageId)
    if (known) {
      known.expiresAt = Math.max(known.expiresAt, expiresAt)
      return known.state === 'refused'
    }
    const record = this.begin(
      sender,
      messageId,
      { messageType: 'request', capability: undefined, payloadSha256: '' },
      expiresAt,
      '',
    )
    if (!record) return false
    record.state = 'refused'
    record.waiters = []
    return true
  }

  sweep(): void {
    const now = this.#options.now()
    for (const [sender, share] of this.#shares) {
      for (const record of share.records.values()) {
        if (record.expiresAt < now && record.state !== 'running' && record.state !== 'waiting')
          this.#remove(sender, record)
      }
      // What has expired must not be held on to by the order of settling.
      share.settled = share.settled.slice(share.head).filter((one) => share.records.get(one.messageId) === one)
      share.head = 0
    }
  }

  /** The sender's share with room for one more id. */
  #room(sender: string): Share | undefined {
    const { idsPerSender, idsPerNode } = this.#options
    let share = this.#shares.get(sender)
    if (share && share.records.size >= idsPerSender && !this.#forgetOne(sender, share)) return undefined
    if (this.#size >= idsPerNode && !(share && this.#forgetOne(sender, share)) && !this.#forgetOfLargest())
      return undefined
    // Bytes of unsettled answers may not be forgotten: a sender that never reads its answers gets no further work done.
    if (share && share.bytes > this.#options.bytesPerSender) return undefined
    share = this.#shares.get(sender)
    if (!share) {
      share = { records: new Map(), settled: [], head: 0, passed: new Set(), bytes: 0 }
      this.#shares.set(sender, share)
    }
    return share
  }

  #shrink(sender: string, share: Share): void {
    const { bytesPerSender } = this.#options
    while (share.bytes > bytesPerSender && this.#forgetOne(sender, share)) {
      // Forgets settled ones, oldest first.
    }
    for (const record of share.passed) {
      if (share.bytes <= bytesPerSender) return
      share.passed.delete(record)
      const { payload } = record.outcome as Outcome
      share.bytes -= payload.length
      record.digest = sha256Hex(payload)
      record.outcome = undefined
    }
  }

  #forgetOne(sender: string, share: Share): boolean {
    const oldest = oldestSettled(share)
    if (!oldest) return false
    share.head++
    if (share.head > 1024 && share.head * 2 > share.settled.length) {
      share.settled = share.settled.slice(share.head)
      share.head = 0
    }
    this.#remove(sender, oldest)
    return true
  }

  /** For a sender that has nothing of its own to forget: those who fill the node must not starve the others. */
  #forgetOfLargest(): boolean {
    let largest: [string, Share] | undefined
    for (const entry of this.#shares) {
      const [sender, share] = entry
      const more = share.records.size - (largest?.[1].records.size ?? 0)
      if ((more > 0 || (more === 0 && largest && sender < largest[0])) && oldestSettled(share)) largest = entry
    }
    return largest !== undefined && this.#forgetOne(...largest)
  }

  #remove(sender: string, record: WorkRecord): void {
    const share = this.#shares.get(sender)
    if (!share?.records.delete(record.messageId)) return
    share.passed.delete(record)
    share.bytes -= record.outcome?.payload.length ?? 0
    this.#size--
    if (share.records.size === 0) this.#shares.delete(sender)
  }
}

/** What may be forgotten next; passes over what has expired meanwhile. */
function oldestSettled(share: Share): WorkRecord | undefined {
  for (; share.head < share.settled.length; share.head++) {
    const oldest = share.settled[share.head] as WorkRecord
    if (share.records.get(oldest.messageId) === oldest) return oldest
  }
  return undefined
}
