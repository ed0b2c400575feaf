import {
  decodePayload,
  type ErrorCode,
  fromWireError,
  HermesError,
  LIMITS,
  newSpanId,
  readAckPayload,
} from '@hermes-peer/protocol'
import type { Clock, Timer } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Incoming } from '../../delivery/inbox.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import type { Journal, JournalChange } from '../../journal/journal.ts'
import type { Link } from '../../link/link.ts'
import type { Links } from '../../link/links.ts'
import type { Random } from '../../random.ts'
import { onAbort } from '../../signals.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import { HEADER_ROOM } from '../outcomes.ts'
import type { Pending, PendingAttempt } from '../pending.ts'
import { DRAFT_PREFIX, type DurableDraft, readDraft, removal, stored } from './stored-draft.ts'

/** What becomes of drafts that nobody in this life has asked for as well. */
export interface DraftEnds {
  /** Stored over there, or answered. The draft is gone. */
  settled(draft: DurableDraft, answer: Incoming): void
  /** Refused, or expired. `keep`: it is sent again later, as where the agent is only busy. */
  refused(draft: DurableDraft, error: HermesError, attempts: number): 'keep' | 'drop'
}

/** The drafts that wait for their ack, in the journal. */
export interface Drafts {
  /** Takes up what an earlier life has left. */
  load(): Promise<void>
  /**
   * Stores it, then begins to send it. Rejects with `QUEUE_FULL`, `PAYLOAD_TOO_LARGE` or `STORAGE_FAILED`, and then it is none.
   * `beside` is stored with it.
   */
  add(draft: DurableDraft, beside?: readonly JournalChange[]): Promise<void>
  /** Whether it has been on the wire; undefined when there is none. */
  sent(messageId: string): boolean | undefined
  /**
   * Takes it back, in favour of another where one is given; stored together with `beside`. Rejects with `STORAGE_FAILED`, and then
   * it is sent as before.
   */
  takeBack(messageId: string, change: { instead?: DurableDraft; beside?: readonly JournalChange[] }): Promise<void>
  /** A link to that agent is up. */
  linked(agentId: string): void
  stop(): void
}

export interface DraftsOptions {
  readonly journal: Journal
  readonly outbox: Outbox
  readonly pending: Pending
  readonly links: Links
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly ends: DraftEnds
  reach(agentId: string, signal: AbortSignal): Promise<Link>
}

interface Entry {
  readonly draft: DurableDraft
  /** It may be sent: it is in the journal, and nobody is about to take it back. */
  ready: boolean
  attempt: number
  /** Attempts that may still be answered, oldest first. */
  readonly attempts: PendingAttempt[]
  timer: Timer | undefined
  /** Takes back what still waits for room in a link. */
  takeBack: () => void
  waitMs: number
}

/** Attempts of one draft that may be answered: the first ack counts, whichever it names. */
const MOST_ATTEMPTS = 4
/** What is wrong with the message itself, on every link. */
const UNSENDABLE: ReadonlySet<string> = new Set<ErrorCode>([
  'PAYLOAD_TOO_LARGE',
  'INVALID_PAYLOAD',
  'LIMIT_EXCEEDED',
  'MALFORMED',
  'DEPTH_EXCEEDED',
])

export function createDrafts(options: DraftsOptions): Drafts {
  return new JournaledDrafts(options)
}

class JournaledDrafts implements Drafts {
  readonly #options: DraftsOptions
  readonly #byId = new Map<string, Entry>()
  readonly #byAgent = new Map<string, Set<Entry>>()
  /** Agents that are being reached; one at a time each. */
  readonly #reaching = new Set<string>()
  readonly #stop = new AbortController()
  #bytes = 0

  constructor(options: DraftsOptions) {
    this.#options = options
  }

  async load(): Promise<void> {
    for await (const [key, value] of this.#options.journal.entries('outbox', DRAFT_PREFIX)) {
      const entry = this.#enter(readDraft(key, value))
      entry.ready = true
      this.#send(entry)
    }
  }

  async add(draft: DurableDraft, beside: readonly JournalChange[] = []): Promise<void> {
    const { journal, tunables } = this.#options
    const size = draft.payload.length + HEADER_ROOM
    if (size > LIMITS.envelope) {
      throw new HermesError('PAYLOAD_TOO_LARGE', {
        message: `the payload has ${size} bytes with its header, the limit of what is sent again until it is acknowledged is ${LIMITS.envelope}`,
        hint: 'Send it in parts, or offer it with offerContext() and send the reference.',
        details: { size, limit: LIMITS.envelope },
      })
    }
    const waiting = this.#byAgent.get(draft.agentId)?.size ?? 0
    if (
      waiting >= tunables.draftsPerPeer ||
      this.#byId.size >= tunables.draftsPerNode ||
      this.#bytes + draft.payload.length > tunables.draftBytesPerNode
    ) {
      throw new HermesError('QUEUE_FULL', {
        message: `${waiting} messages to ${draft.agentId} and ${this.#byId.size} in all wait for an ack`,
      })
    }
    const entry = this.#enter(draft)
    try {
      await journal.commit([stored(draft), ...beside])
    } catch (error) {
      this.#leave(entry)
      throw HermesError.from(error, 'STORAGE_FAILED')
    }
    entry.ready = true
    if (this.#byId.get(draft.messageId) === entry) this.#send(entry)
  }

  sent(messageId: string): boolean | undefined {
    const entry = this.#byId.get(messageId)
    return entry && entry.attempt > 0
  }

  async takeBack(
    messageId: string,
    { instead, beside = [] }: { instead?: DurableDraft; beside?: readonly JournalChange[] },
  ): Promise<void> {
    const entry = this.#byId.get(messageId)
    if (!entry) return
    entry.ready = false
    this.#quiet(entry)
    const next = instead && this.#enter(instead)
    try {
      await this.#options.journal.commit([removal(entry.draft), ...(instead ? [stored(instead)] : []), ...beside])
    } catch (error) {
      if (next) this.#leave(next)
      entry.ready = true
      this.#send(entry)
      throw HermesError.from(error, 'STORAGE_FAILED')
    }
    this.#leave(entry)
    if (!next) return
    next.ready = true
    this.#send(next)
  }

  linked(agentId: string): void {
    for (const entry of this.#byAgent.get(agentId) ?? []) {
      entry.waitMs = this.#options.tunables.resendMs
      this.#send(entry)
    }
  }

  stop(): void {
    this.#stop.abort(new HermesError('STOPPED'))
    for (const entry of this.#byId.values()) this.#quiet(entry)
  }

  #send(entry: Entry): void {
    if (this.#stop.signal.aborted || !entry.ready) return
    const { draft } = entry
    const { clock, outbox, links, random, telemetry } = this.#options
    this.#rest(entry)
    const leftMs = draft.expiresAt - clock.now()
    if (leftMs <= 0) {
      const expired = new HermesError('EXPIRED', {
        message: `${draft.agentId} has not acknowledged it before it expired`,
      })
      this.#options.ends.refused(draft, expired, entry.attempt)
      this.#leave(entry)
      void this.#forget(entry)
      return
    }
    const link = links.get(draft.agentId)
    if (!link) {
      void this.#reach(draft.agentId)
      return
    }
    const attempt = ++entry.attempt
    if (attempt > 1) {
      const { messageId, correlationId, traceId, agentId } = draft
      telemetry.emit('outbox.resent', { messageId, correlationId, traceId, agentId, attempt })
    }
    const again = (): void => {
      entry.timer = clock.after(entry.waitMs, () => this.#send(entry))
      entry.waitMs = Math.min(entry.waitMs * 2, this.#options.tunables.resendCapMs)
    }
    entry.takeBack = outbox.post(
      link,
      {
        ...draft,
        spanId: newSpanId((length) => random.bytes(length)),
        callType: draft.type === 'submit' ? 'task' : undefined,
        ack: draft.type === 'event' ? 'stored' : undefined,
        expiresAt: draft.expiresAt,
        attempt,
        ordered: attempt === 1,
      },
      {
        written: ({ leaf }) => {
          const waiter: PendingAttempt = {
            leaf,
            agentId: draft.agentId,
            epoch: link.remote.epoch,
            takes: draft.type === 'request' ? 'response' : 'ack',
            answered: (answer) => this.#answered(entry, answer),
            // What cannot be told apart from a forgery answers nothing.
            distrusted: () => undefined,
            // It is sent again once there is a link, by whatever life of the other side.
            lost: () => this.#lost(entry, waiter),
          }
          this.#options.pending.add(waiter)
          entry.attempts.push(waiter)
          if (entry.attempts.length > MOST_ATTEMPTS)
            this.#options.pending.remove(entry.attempts.shift() as PendingAttempt)
          again()
        },
        // A lost link or a full line passes; what no link ever takes does not.
        failed: (error) => {
          if (UNSENDABLE.has(error.code)) this.#refused(entry, error)
          else again()
        },
      },
    )
  }

  #answered(entry: Entry, answer: Incoming): void {
    if (this.#byId.get(entry.draft.messageId) !== entry) return
    const { ends } = this.#options
    if (answer.header.message_type === 'error') {
      let error: HermesError
      try {
        error = readError(answer)
      } catch (unreadable) {
        error = HermesError.from(unreadable)
      }
      this.#refused(entry, error)
      return
    }
    if (!readable(answer)) return
    ends.settled(entry.draft, answer)
    this.#leave(entry)
    void this.#forget(entry)
  }

  #refused(entry: Entry, error: HermesError): void {
    const { ends, clock } = this.#options
    if (ends.refused(entry.draft, error, entry.attempt) === 'keep') {
      this.#rest(entry)
      entry.timer = clock.after(Math.max(error.retryAfterMs ?? 0, entry.waitMs), () => this.#send(entry))
      return
    }
    this.#leave(entry)
    void this.#forget(entry)
  }

  #lost(entry: Entry, attempt: PendingAttempt): void {
    this.#options.pending.remove(attempt)
    const at = entry.attempts.indexOf(attempt)
    if (at >= 0) entry.attempts.splice(at, 1)
    if (this.#byId.get(entry.draft.messageId) === entry) void this.#reach(entry.draft.agentId)
  }

  /** Looks for a link until there is one or nothing waits for it. */
  async #reach(agentId: string): Promise<void> {
    if (this.#reaching.has(agentId)) return
    this.#reaching.add(agentId)
    const { tunables, random, reach } = this.#options
    const { signal } = this.#stop
    for (let failures = 0; !signal.aborted && this.#byAgent.has(agentId); failures++) {
      try {
        await reach(agentId, signal)
        break
      } catch {
        const most = Math.min(tunables.reconnectCapMs, tunables.reconnectMs * 2 ** Math.min(failures, 16))
        await this.#pause(random.next() * most)
        // Whoever cannot be reached must not keep what has expired.
        const now = this.#options.clock.now()
        for (const entry of [...(this.#byAgent.get(agentId) ?? [])]) if (entry.draft.expiresAt <= now) this.#send(entry)
      }
    }
    this.#reaching.delete(agentId)
    // The link may have come up before this search knew of it, and have been lost again.
    for (const entry of this.#byAgent.get(agentId) ?? []) if (entry.timer === undefined) this.#send(entry)
  }

  #pause(ms: number): Promise<void> {
    const { clock } = this.#options
    return new Promise((resolve) => {
      const timer = clock.after(ms, () => {
        release()
        resolve()
      })
      const release = onAbort(this.#stop.signal, () => {
        clock.clear(timer)
        resolve()
      })
    })
  }

  async #forget({ draft }: Entry): Promise<void> {
    try {
      await this.#options.journal.commit([removal(draft)])
    } catch (cause) {
      // It stays in the journal: the next life sends it once more, which the other side knows for the same.
      this.#options.telemetry.emit('journal.failed', { what: `forgetting the draft ${draft.messageId}`, cause })
    }
  }

  #enter(draft: DurableDraft): Entry {
    const entry: Entry = {
      draft,
      ready: false,
      attempt: 0,
      attempts: [],
      timer: undefined,
      takeBack: () => undefined,
      waitMs: this.#options.tunables.resendMs,
    }
    this.#byId.set(draft.messageId, entry)
    const entries = this.#byAgent.get(draft.agentId) ?? new Set()
    entries.add(entry)
    this.#byAgent.set(draft.agentId, entries)
    this.#bytes += draft.payload.length
    return entry
  }

  #leave(entry: Entry): void {
    const { draft } = entry
    if (this.#byId.get(draft.messageId) !== entry) return
    this.#quiet(entry)
    this.#byId.delete(draft.messageId)
    const entries = this.#byAgent.get(draft.agentId)
    entries?.delete(entry)
    if (entries?.size === 0) this.#byAgent.delete(draft.agentId)
    this.#bytes -= draft.payload.length
  }

  #quiet(entry: Entry): void {
    this.#rest(entry)
    for (const attempt of entry.attempts.splice(0)) this.#options.pending.remove(attempt)
  }

  #rest(entry: Entry): void {
    this.#options.clock.clear(entry.timer)
    entry.timer = undefined
    entry.takeBack()
    entry.takeBack = () => undefined
  }
}

function readError(answer: Incoming): HermesError {
  return fromWireError(decodePayload(answer.header.content_type, answer.payload))
}

/** An ack that cannot be read is none: it is asked for again. */
function readable({ header, payload }: Incoming): boolean {
  if (header.message_type !== 'ack') return true
  try {
    readAckPayload(decodePayload(header.content_type, payload))
    return true
  } catch {
    return false
  }
}
