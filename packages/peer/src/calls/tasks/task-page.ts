import type { HermesError, TaskEvent } from '@hermes-peer/protocol'
import type { Clock, Timer } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Journal, JournalChange } from '../../journal/journal.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import { describing, eventChange, eventRemoval, submitChanges } from './stored-task.ts'
import type { Task, TaskNews } from './task.ts'

export interface TaskPageOptions {
  readonly journal: Journal
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
}

/** One task and its way into the journal: what has happened is written one after the other, and told once it is stored. */
export interface TaskPage {
  readonly task: Task
  /** It is in the journal: before that it is none. */
  readonly known: boolean
  readonly writing: boolean
  /** Stores a new task; rejects with what the journal says, and then it is none. */
  accept(): Promise<void>
  /** Notes an event; it is stored, however often that has to be tried. */
  note(news: TaskNews): void
  /** Something else of the task has changed. */
  changed(): void
  /** Resolves once everything noted so far is stored; rejects with `STOPPED`. */
  stored(): Promise<void>
  /** Calls back each time that more of it is stored; returns the way to stop. */
  watch(changed: () => void): () => void
  /** Removes it from the journal; nothing of it is written any more. */
  forget(): void
  stop(reason: HermesError): void
}

/** `known`: it has been read from the journal. */
export function createTaskPage(task: Task, options: TaskPageOptions, known = false): TaskPage {
  return new JournaledPage(task, options, known)
}

class JournaledPage implements TaskPage {
  readonly task: Task
  known: boolean
  writing = false
  readonly #options: TaskPageOptions
  /** Numbered, kept, and not on their way into the journal: bounded by the events that are kept. */
  #fresh: TaskEvent[] = []
  /** Numbers of folded events that may stand in the journal, and are to be removed from it. */
  #folded: number[] = []
  #dirty = false
  /** Counts its changes, and those of them that are stored. */
  #version = 0
  #storedVersion = 0
  #waiters: { version: number; resolve(): void; reject(error: HermesError): void }[] = []
  readonly #watchers = new Set<() => void>()
  #pause: { timer: Timer | undefined; end(): void } | undefined
  #forgotten = false
  #stopped: HermesError | undefined

  constructor(task: Task, options: TaskPageOptions, known: boolean) {
    this.task = task
    this.#options = options
    this.known = known
  }

  async accept(): Promise<void> {
    const { journal, clock } = this.#options
    const { task } = this
    const first = task.add({ type: 'state', state: 'accepted' }, clock.now())
    this.writing = true
    this.#version = 1
    await journal.commit([describing(task), ...submitChanges(task, true), eventChange(task, first)])
    this.known = true
    task.stored = first.n
    this.#storedVersion = 1
    this.writing = false
    this.#tell()
    if (this.#dirty) this.#begin()
  }

  note(news: TaskNews): void {
    const { clock, tunables } = this.#options
    const { task } = this
    this.#fresh.push(task.add(news, clock.now()))
    const gone = task.fold({ events: tunables.taskEvents, bytes: tunables.taskEventBytes })
    const last = gone.at(-1)
    if (last !== undefined) {
      // What is folded before it was written needs neither.
      const firstFresh = this.#fresh[0]?.n ?? Number.POSITIVE_INFINITY
      this.#folded.push(...gone.filter((n) => n < firstFresh))
      if (firstFresh <= last) this.#fresh = this.#fresh.filter(({ n }) => n > last)
    }
    if (task.ended) task.letGo()
    this.changed()
  }

  changed(): void {
    this.#version++
    this.#dirty = true
    if (!this.writing) this.#begin()
  }

  stored(): Promise<void> {
    if (this.#forgotten || this.#storedVersion >= this.#version) return Promise.resolve()
    if (this.#stopped) return Promise.reject(this.#stopped)
    return new Promise((resolve, reject) => this.#waiters.push({ version: this.#version, resolve, reject }))
  }

  watch(changed: () => void): () => void {
    this.#watchers.add(changed)
    return () => this.#watchers.delete(changed)
  }

  forget(): void {
    const { task } = this
    this.#forgotten = true
    this.#pause?.end()
    for (const { resolve } of this.#waiters.splice(0)) resolve()
    const removals: JournalChange[] = [
      { ...describing(task), value: undefined },
      ...submitChanges(task, false),
      ...this.#folded.map((n) => eventRemoval(task, n)),
      ...task.events.map(({ n }) => eventRemoval(task, n)),
    ]
    // What stays behind after a failure is read by the next life, and swept by it.
    this.#options.journal.commit(removals).catch((cause: unknown) => this.#failed('forgetting a task', cause))
  }

  stop(reason: HermesError): void {
    this.#stopped = reason
    this.#pause?.end()
    this.#giveUp(reason)
  }

  #begin(): void {
    this.writing = true
    this.#write().catch((cause: unknown) => this.#failed(`storing task ${this.task.origin.taskId}`, cause))
  }

  /** Writes until nothing is left to be written; what fails is tried again. */
  async #write(): Promise<void> {
    const { tunables } = this.#options
    try {
      while (this.#dirty && !this.#forgotten) {
        try {
          await this.#writeOnce()
        } catch (cause) {
          if (this.#stopped) return
          this.#failed(`storing task ${this.task.origin.taskId}`, cause)
          await this.#wait(tunables.journalRetryMs)
          if (this.#stopped) return
        }
      }
    } finally {
      this.writing = false
      if (this.#stopped) this.#giveUp(this.#stopped)
    }
  }

  async #writeOnce(): Promise<void> {
    const { task } = this
    const fresh = this.#fresh
    const folded = [...this.#folded]
    const { state, last } = task
    const version = this.#version
    this.#dirty = false
    this.#fresh = []
    try {
      await this.#options.journal.commit([
        ...fresh.map((event) => eventChange(task, event)),
        ...folded.map((n) => eventRemoval(task, n)),
        describing(task),
        ...(task.ended || task.elsewhere ? submitChanges(task, false) : []),
      ])
    } catch (error) {
      // Nothing of it is stored: what of it has been folded meanwhile is nowhere.
      const tried = new Set(fresh.map(({ n }) => n))
      const since = new Set(this.#folded.slice(folded.length))
      this.#fresh = [...fresh.filter(({ n }) => !since.has(n)), ...this.#fresh]
      this.#folded = this.#folded.filter((n) => !tried.has(n))
      this.#dirty = true
      throw error
    }
    this.#folded.splice(0, folded.length)
    task.stored = last
    task.storedState = state
    this.#storedVersion = version
    this.#tell()
  }

  #tell(): void {
    const version = this.#storedVersion
    const ready = this.#waiters.filter((waiter) => waiter.version <= version)
    this.#waiters = this.#waiters.filter((waiter) => waiter.version > version)
    for (const { resolve } of ready) resolve()
    for (const changed of [...this.#watchers]) changed()
  }

  #giveUp(reason: HermesError): void {
    if (this.writing && this.#waiters.length > 0) return
    for (const { reject } of this.#waiters.splice(0)) reject(reason)
  }

  #wait(ms: number): Promise<void> {
    const { clock } = this.#options
    return new Promise((resolve) => {
      const end = (): void => {
        clock.clear(this.#pause?.timer)
        this.#pause = undefined
        resolve()
      }
      this.#pause = { timer: clock.after(ms, end), end }
    })
  }

  #failed(what: string, cause: unknown): void {
    this.#options.telemetry.emit('journal.failed', { what, cause })
  }
}
