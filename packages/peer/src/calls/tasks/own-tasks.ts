import { decodePayload, encodePayload, fromWireError, HermesError, toWireError } from '@hermes-peer/protocol'
import type { Journal, JournalChange } from '../../journal/journal.ts'

/** What a peer remembers of a task that it has submitted. */
export interface OwnTask {
  readonly taskId: string
  /** The agent that it was submitted to, and is asked about it: the first of the way to whoever works on it. */
  readonly agentId: string
  readonly capability: string
  readonly traceId: string
  /** Wall clock, ms: forgotten when neither submit nor end can be known any more. */
  readonly until: number
  acknowledged: boolean
  /** Who works on it, where that is another agent: whoever signed the last news. */
  holder?: string
  /** Why it never will be. */
  rejected: HermesError | undefined
}

/** The tasks that this peer has submitted, so that they are found again after a restart. */
export interface OwnTasks {
  load(): Promise<void>
  get(taskId: string): OwnTask | undefined
  /** Takes it in; the change is to be stored together with its draft. */
  add(task: OwnTask): JournalChange
  /** What stores it as it is, together with something else. */
  change(task: OwnTask): JournalChange
  /** Stores what has changed of it; a failure is reported, and told again by the next life. */
  save(task: OwnTask): Promise<void>
  remove(taskId: string): Promise<void>
  /** Calls back when it is acknowledged or rejected; returns the way to stop. */
  watch(taskId: string, changed: () => void): () => void
  changed(taskId: string): void
  sweep(now: number): void
}

const PREFIX = 'task#'
const JSON_TYPE = 'application/json'

/** `most`: tasks remembered; the oldest are forgotten first. */
export function createOwnTasks(options: {
  journal: Journal
  most: number
  failed(what: string, cause: unknown): void
}): OwnTasks {
  const { journal, most, failed } = options
  const tasks = new Map<string, OwnTask>()
  const watchers = new Map<string, Set<() => void>>()

  const change = (task: OwnTask, value: Uint8Array | undefined): JournalChange => ({
    table: 'outbox',
    key: `${PREFIX}${task.taskId}`,
    value,
  })
  const storedForm = (task: OwnTask): JournalChange => {
    const rejected = task.rejected ? toWireError(task.rejected) : null
    try {
      return change(task, encodePayload(JSON_TYPE, { ...task, rejected } as never))
    } catch {
      // What another agent says of a refusal may be all that a payload can hold, and then does not fit into anything else.
      return change(task, encodePayload(JSON_TYPE, { ...task, rejected: { ...rejected, details: {} } } as never))
    }
  }
  const commit = async (changes: readonly JournalChange[], what: string): Promise<void> => {
    try {
      await journal.commit(changes)
    } catch (cause) {
      failed(what, cause)
    }
  }

  return {
    async load() {
      for await (const [key, value] of journal.entries('outbox', PREFIX)) {
        try {
          const fields = decodePayload(JSON_TYPE, value) as unknown as OwnTask & { rejected: never }
          tasks.set(fields.taskId, {
            ...fields,
            rejected: fields.rejected ? fromWireError(fields.rejected) : undefined,
          })
        } catch (cause) {
          throw new HermesError('STORAGE_FAILED', { message: `the journal's ${key} cannot be read`, cause })
        }
      }
    },
    get: (taskId) => tasks.get(taskId),
    add(task) {
      tasks.set(task.taskId, task)
      if (tasks.size > most) {
        const oldest = tasks.values().next().value as OwnTask
        tasks.delete(oldest.taskId)
        void commit([change(oldest, undefined)], `forgetting task ${oldest.taskId}`)
      }
      return storedForm(task)
    },
    change: storedForm,
    save: (task) => commit([storedForm(task)], `storing what became of task ${task.taskId}`),
    async remove(taskId) {
      const task = tasks.get(taskId)
      tasks.delete(taskId)
      if (task) await commit([change(task, undefined)], `forgetting task ${taskId}`)
    },
    watch(taskId, changed) {
      const set = watchers.get(taskId) ?? new Set()
      watchers.set(taskId, set)
      set.add(changed)
      return () => {
        set.delete(changed)
        if (set.size === 0 && watchers.get(taskId) === set) watchers.delete(taskId)
      }
    },
    changed(taskId) {
      for (const changed of [...(watchers.get(taskId) ?? [])]) changed()
    },
    sweep(now) {
      const over = [...tasks.values()].filter(({ until }) => until < now)
      for (const { taskId } of over) tasks.delete(taskId)
      if (over.length > 0)
        void commit(
          over.map((task) => change(task, undefined)),
          'forgetting old tasks',
        )
    },
  }
}
