import {
  decodePayload,
  encodePayload,
  fromBase64url,
  HermesError,
  type JsonValue,
  toBase64url,
} from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Journal, JournalChange } from '../journal/journal.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Responder } from './responder.ts'

export interface StoredEventsOptions {
  readonly journal: Journal
  readonly responder: Responder
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  /** Hands an event to its listeners. */
  deliver(event: StoredEvent): void
}

/** What of an event is kept until its listeners have had it. */
export interface StoredEvent {
  readonly from: string
  readonly name: string
  readonly data: JsonValue
  readonly messageId: string
  readonly correlationId: string | undefined
  readonly traceId: string
}

/**
 * Events that are acknowledged once they are stored: each is handed to its listeners at least once, also when this agent ends
 * right after its ack, and but once in one life.
 */
export interface StoredEvents {
  /** Remembers what came in earlier lives; before anything can come again. Throws `STORAGE_FAILED`. */
  load(): Promise<void>
  /** Hands on what an earlier life had stored and not handed on. */
  handOn(): void
  /** Whether it has come before. */
  knows(incoming: Incoming): boolean
  /** A new one, or one that has come before, in this life or an earlier one. Throws `BUSY`. */
  receive(incoming: Incoming, data: JsonValue): void
  sweep(): void
}

interface Mark {
  readonly from: string
  /** Wall clock, ms. */
  readonly expiresAt: number
  /** Attempts that wait for the ack; undefined once it is stored. */
  waiting: Incoming[] | undefined
}

const JSON_TYPE = 'application/json'
/** Attempts of one event that may wait for its ack. */
const MOST_WAITING = 16

export function createStoredEvents(options: StoredEventsOptions): StoredEvents {
  const { journal, responder, clock, tunables, telemetry, deliver } = options
  /** By sender and message id. Bounded by `storedEvents`; each lives as long as its event may come again. */
  const marks = new Map<string, Mark>()
  /** How many of them by sender. Bounded by `storedEventsPerSender`. */
  const counts = new Map<string, number>()
  /** Of an earlier life; until they are handed on. */
  let owed: { key: string; expiresAt: number; event: StoredEvent }[] = []

  const remember = (key: string, mark: Mark): void => {
    marks.set(key, mark)
    counts.set(mark.from, (counts.get(mark.from) ?? 0) + 1)
  }
  const forget = (key: string): void => {
    const mark = marks.get(key)
    if (!mark) return
    marks.delete(key)
    const left = (counts.get(mark.from) ?? 1) - 1
    if (left > 0) counts.set(mark.from, left)
    else counts.delete(mark.from)
  }
  const checkRoom = (from: string): void => {
    const own = counts.get(from) ?? 0
    if (marks.size < tunables.storedEvents && own < tunables.storedEventsPerSender) return
    throw new HermesError('BUSY', {
      message:
        own >= tunables.storedEventsPerSender
          ? `${own} stored events of ${from} are remembered here, the limit is ${tunables.storedEventsPerSender}`
          : `${marks.size} stored events are remembered here, the limit is ${tunables.storedEvents}`,
      retryAfterMs: 1000,
    })
  }

  const change = (key: string, expiresAt: number, event: StoredEvent | undefined): JournalChange => ({
    table: 'marks',
    key,
    value: encodePayload(JSON_TYPE, {
      expiresAt,
      event: event ? { ...event, correlationId: event.correlationId ?? null, data: textOf(event.data) } : null,
    } as never),
  })
  const acknowledge = ({ from, leaf, header }: Incoming): void =>
    responder.acknowledge(from, leaf, header, { status: 'stored' })
  const handOver = (key: string, expiresAt: number, event: StoredEvent): void => {
    deliver(event)
    // Should this fail it is handed on once more by the next life, which is what was promised.
    journal
      .commit([change(key, expiresAt, undefined)])
      .catch((cause: unknown) => telemetry.emit('journal.failed', { what: `noting event ${event.messageId}`, cause }))
  }

  const store = async (key: string, mark: Mark, event: StoredEvent): Promise<void> => {
    const tell = (how: (incoming: Incoming) => void): void => {
      const waiting = mark.waiting ?? []
      mark.waiting = undefined
      for (const incoming of waiting) how(incoming)
    }
    try {
      await journal.commit([change(key, mark.expiresAt, event)])
    } catch (cause) {
      forget(key)
      telemetry.emit('journal.failed', { what: `storing event ${event.messageId}`, cause })
      // No ack: it is sent again.
      tell(() => undefined)
      return
    }
    tell(acknowledge)
    handOver(key, mark.expiresAt, event)
  }

  return {
    async load() {
      for await (const [key, value] of journal.entries('marks')) {
        let stored: { expiresAt: number; event: StoredEvent | null }
        try {
          stored = decodePayload(JSON_TYPE, value) as never
          if (stored.event) stored = { ...stored, event: { ...stored.event, data: dataOf(stored.event.data) } }
        } catch (cause) {
          throw new HermesError('STORAGE_FAILED', { message: `the journal's mark ${key} cannot be read`, cause })
        }
        const { expiresAt, event } = stored
        remember(key, { from: senderOf(key), expiresAt, waiting: undefined })
        if (event) {
          owed.push({ key, expiresAt, event: { ...event, correlationId: event.correlationId ?? undefined } })
        }
      }
    },
    handOn() {
      for (const { key, expiresAt, event } of owed) handOver(key, expiresAt, event)
      owed = []
    },
    knows: (incoming) => marks.has(keyOf(incoming)),
    receive(incoming, data) {
      const { from, header, expiresAt } = incoming
      const key = keyOf(incoming)
      const known = marks.get(key)
      if (known) {
        if (!known.waiting) acknowledge(incoming)
        else if (known.waiting.length < MOST_WAITING) known.waiting.push(incoming)
        return
      }
      checkRoom(from)
      const mark: Mark = { from, expiresAt, waiting: [incoming] }
      remember(key, mark)
      void store(key, mark, {
        from,
        name: header.target_capability as string,
        data,
        messageId: header.message_id,
        correlationId: header.correlation_id,
        traceId: header.trace_id,
      })
    },
    sweep() {
      const now = clock.now()
      const over = [...marks].filter(([, { expiresAt, waiting }]) => expiresAt < now && !waiting).map(([key]) => key)
      if (over.length === 0) return
      for (const key of over) forget(key)
      journal
        .commit(over.map((key) => ({ table: 'marks', key, value: undefined }) as const))
        .catch((cause: unknown) => telemetry.emit('journal.failed', { what: 'forgetting events', cause }))
    },
  }
}

/** As one text: beside other fields data may have more levels and keys than a payload may. */
const textOf = (data: JsonValue): string => toBase64url(encodePayload(JSON_TYPE, data))

function dataOf(text: JsonValue): JsonValue {
  const bytes = typeof text === 'string' ? fromBase64url(text) : undefined
  if (!bytes) throw new Error('its data are not what this version writes')
  return decodePayload(JSON_TYPE, bytes)
}

const keyOf = ({ from, header }: Incoming): string => `event#${from}#${header.message_id}`
/** The sender within a key: an agent id has no `#`. */
const senderOf = (key: string): string => key.split('#')[1] ?? ''
