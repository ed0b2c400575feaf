import { decodePayload, encodePayload, HermesError, type JsonValue, type TaskEvent } from '@hermes-peer/protocol'
import type { JournalChange } from '../../journal/journal.ts'
import { Task, type TaskOrigin } from './task.ts'

// How a task stands in the journal: what describes it, the payload of its submit and the rest of it under `tasks`, each event by its number
// under `updates`, so that a step of progress does not write the whole task again.

const JSON_TYPE = 'application/json'
/** Digits of an event's number in its key: the order of keys is the order of events. */
const DIGITS = 12

export const keyOf = ({ owner, taskId }: Pick<TaskOrigin, 'owner' | 'taskId'>): string => `${owner}#${taskId}`

export function describing(task: Task): JournalChange {
  const { origin, state, last, folded, endedAt, handed, told } = task
  return {
    table: 'tasks',
    key: keyOf(origin),
    value: encodePayload(JSON_TYPE, {
      origin,
      state,
      last,
      folded: folded ?? null,
      endedAt,
      handed: handed ?? null,
      told,
    } as never),
  }
}

/** What the task was submitted with; two changes, as each is as large as a value may be. */
export function submitChanges(task: Task, kept: boolean): JournalChange[] {
  const key = keyOf(task.origin)
  return [
    { table: 'tasks', key: `${key}${PAYLOAD}`, value: kept ? task.payload : undefined },
    { table: 'tasks', key: `${key}${ENVELOPE}`, value: kept ? task.envelope : undefined },
  ]
}

const PAYLOAD = '#payload'
const ENVELOPE = '#envelope'

export const eventChange = (task: Task, event: TaskEvent): JournalChange => ({
  table: 'updates',
  key: eventKey(task, event.n),
  value: encodePayload(JSON_TYPE, event as never),
})

export const eventRemoval = (task: Task, n: number): JournalChange => ({
  table: 'updates',
  key: eventKey(task, n),
  value: undefined,
})

export const eventsPrefix = (task: Task): string => `${keyOf(task.origin)}#`

function eventKey(task: Task, n: number): string {
  return `${eventsPrefix(task)}${String(n).padStart(DIGITS, '0')}`
}

/** Whether a key of the table `tasks` is that of a part of a submit. */
export const isSubmitKey = (key: string): boolean => key.endsWith(PAYLOAD) || key.endsWith(ENVELOPE)

/** Throws `STORAGE_FAILED` for what this version has not written. */
export function readTask(key: string, value: Uint8Array, parts: ReadonlyMap<string, Uint8Array>): Task {
  try {
    const { origin, state, last, folded, endedAt, handed, told } = decodePayload(JSON_TYPE, value) as unknown as {
      origin: TaskOrigin
      state: Task['state']
      last: number
      folded: Task['folded'] | null
      endedAt: number
      handed: Task['handed'] | null
      told?: boolean
    }
    if (keyOf(origin) !== key) throw new Error(`it says it is ${keyOf(origin)}`)
    const part = (name: string): Uint8Array => parts.get(`${key}${name}`) ?? new Uint8Array()
    return new Task(
      // An earlier version took tasks from their owners only.
      { ...origin, via: origin.via ?? [], expiresAt: origin.expiresAt ?? 0 },
      { payload: part(PAYLOAD), envelope: part(ENVELOPE) },
      { state, last, folded: folded ?? undefined, endedAt, handed: handed ?? undefined, told: told === true },
    )
  } catch (cause) {
    throw new HermesError('STORAGE_FAILED', { message: `the journal's task ${key} cannot be read`, cause })
  }
}

export const readEvent = (value: Uint8Array): TaskEvent =>
  decodePayload(JSON_TYPE, value) as unknown as JsonValue as unknown as TaskEvent
