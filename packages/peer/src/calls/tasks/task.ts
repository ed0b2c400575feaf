import {
  type ContentType,
  type Effects,
  isTaskEnd,
  type JsonValue,
  type Priority,
  type TaskEvent,
  type TaskQuestion,
  type TaskState,
} from '@hermes-peer/protocol'
import type { Admission } from '../../policy/guard.ts'
import { keysOf, type Weight } from './tellable.ts'

/** What of a task never changes. */
export interface TaskOrigin {
  readonly taskId: string
  /** The authenticated sender of the submit: nobody else may ask anything of it. */
  readonly owner: string
  /** The agents that handed it on to this one, in that order. */
  readonly via: readonly string[]
  readonly messageId: string
  readonly capability: string
  readonly effects: Effects
  readonly correlationId: string | undefined
  readonly traceId: string
  readonly priority: Priority
  readonly path: readonly string[]
  readonly contentType: ContentType
  readonly payloadSha256: string
  /** Names the delegation that came with it. */
  readonly delegation?: string
  /** Wall clock, ms. */
  readonly acceptedAt: number
  /** Wall clock, ms, tolerance included: until then its submit may come again. */
  readonly expiresAt: number
  /** It has to end this long after it was accepted, ms. */
  readonly budgetMs: number
}

/** The agent that a task was handed on to, and whether it has said that it has stored it: from then on it is there. */
export interface HandedTo {
  readonly agentId: string
  readonly stored: boolean
}

/**
 * News of a task that has come by hops are numbered from this many times the hops on, so that they follow on those of every agent
 * that had it before: its owner asks all of them by one number.
 */
export const NUMBERS_PER_HOLDER = 1_000_000_000

export type Folded = Extract<TaskEvent, { type: 'snapshot' }>
/** An event before it has its number. */
export type TaskNews = TaskEvent extends infer E ? (E extends TaskEvent ? Omit<E, 'n' | 'at'> : never) : never

/** One accepted piece of work: its origin, what has happened, and how much of that is stored. */
export class Task {
  readonly origin: TaskOrigin
  /** The payload of the submit as it came; let go of at the end. */
  payload: Uint8Array
  /** The rest of its submit as it came, from which it can be handed on; let go of with the payload. */
  envelope: Uint8Array
  /** What policy has let it in by, in this life. */
  admission: Admission | undefined
  /** Who has it, or is about to get it, in the place of this agent. */
  handed: HandedTo | undefined
  state: TaskState
  /** As far as it is stored: what others are told. */
  storedState: TaskState
  /** Numbers given, and stored, so far. */
  last: number
  stored: number
  /** Kept events in order; what was before is folded. */
  events: TaskEvent[] = []
  /** Bytes of the kept events, about. */
  bytes = 0
  /** Measured once each: they never change. */
  readonly #sizes = new WeakMap<TaskEvent, Weight>()
  folded: Folded | undefined
  /** Wall clock, ms; 0 while it has not ended. */
  endedAt: number
  /** Its owner has its end, as far as that is known: it may be forgotten to make room. */
  told: boolean

  constructor(
    origin: TaskOrigin,
    submit: { payload: Uint8Array; envelope: Uint8Array },
    at: {
      state: TaskState
      last: number
      folded: Folded | undefined
      endedAt: number
      handed?: HandedTo | undefined
      told?: boolean
    },
  ) {
    this.origin = origin
    this.payload = submit.payload
    this.envelope = submit.envelope
    this.handed = at.handed
    this.state = at.state
    this.storedState = at.state
    this.last = at.last
    this.stored = at.last
    this.folded = at.folded
    this.endedAt = at.endedAt
    this.told = at.told ?? false
  }

  get ended(): boolean {
    return isTaskEnd(this.state)
  }

  /** Another agent has it now. */
  get elsewhere(): boolean {
    return this.handed?.stored === true
  }

  /** What it holds, bytes, about. */
  get weight(): number {
    return this.bytes + this.payload.length + this.envelope.length
  }

  /** Nobody starts it again here: what it was asked with may go. */
  letGo(): void {
    this.payload = NOTHING
    this.envelope = NOTHING
  }

  /** Numbers an event and takes it in; the caller sees to it that it is stored. */
  add(news: TaskNews, at: number): TaskEvent {
    const event = { ...news, n: ++this.last, at } as TaskEvent
    this.events.push(event)
    this.bytes += this.sizeOf(event).bytes
    if (event.type === 'state' || event.type === 'end') this.state = event.state
    if (event.type === 'end') this.endedAt = at
    return event
  }

  /** Folds the oldest events until the bounds hold; returns the numbers of those that are gone. The newest one always stays. */
  fold(most: { events: number; bytes: number }): number[] {
    const gone: number[] = []
    while (this.events.length > 1 && (this.events.length > most.events || this.bytes > most.bytes)) {
      const oldest = this.events.shift() as TaskEvent
      this.bytes -= this.sizeOf(oldest).bytes
      this.folded = foldInto(this.folded, oldest)
      gone.push(oldest.n)
    }
    return gone
  }

  /** Takes in what was stored in an earlier life, in order. */
  restore(events: readonly TaskEvent[]): void {
    this.events = [...events]
    this.bytes = events.reduce((sum, event) => sum + this.sizeOf(event).bytes, 0)
  }

  /** What an event costs in an answer, with all around it. */
  sizeOf(event: TaskEvent): Weight {
    const known = this.#sizes.get(event)
    if (known) return known
    const data = event as unknown as JsonValue
    const size = { bytes: EVENT_ROOM + Buffer.byteLength(JSON.stringify(data)), keys: keysOf(data) }
    this.#sizes.set(event, size)
    return size
  }
}

/** What events tell of a task. */
export function idsOf({ origin }: Task) {
  return { messageId: origin.messageId, correlationId: origin.correlationId, traceId: origin.traceId }
}

const NOTHING = new Uint8Array(0)

function foldInto(before: Folded | undefined, event: TaskEvent): Folded {
  const base = before ?? { type: 'snapshot' as const, state: 'accepted' as TaskState, questions: [] }
  const next = { ...base, n: event.n, at: event.at }
  switch (event.type) {
    case 'state':
      // Back in the queue after a restart, or on with the work: nobody waits for an answer any more.
      return { ...next, state: event.state, questions: event.state === 'input_required' ? base.questions : [] }
    case 'progress':
      return { ...next, fraction: event.fraction, ...(event.note === undefined ? {} : { note: event.note }) }
    case 'partial':
      return { ...next, partial: event.data }
    case 'question':
      return { ...next, questions: [...base.questions, questionOf(event)] }
    case 'answered':
      return { ...next, questions: base.questions.filter(({ question_id }) => question_id !== event.question_id) }
    default:
      return next
  }
}

const questionOf = ({ question_id, data }: TaskQuestion): TaskQuestion => ({ question_id, data })

/** Bytes of the envelope of one event beside its data. */
const EVENT_ROOM = 96
