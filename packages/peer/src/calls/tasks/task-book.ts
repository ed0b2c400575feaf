import { HermesError, type TaskEvent, type TaskState } from '@hermes-peer/protocol'
import type { Clock, Timer } from '../../clock.ts'
import type { Tunables } from '../../defaults.ts'
import type { Journal, JournalChange } from '../../journal/journal.ts'
import type { Telemetry } from '../../telemetry/events.ts'
import {
  describing,
  eventChange,
  eventRemoval,
  eventsPrefix,
  isPayloadKey,
  payloadChange,
  readEvent,
  readTask,
} from './stored-task.ts'
import type { Task, TaskNews } from './task.ts'

/** The tasks of a provider, in memory and in the journal. Nobody is told of anything before it is stored. */
export interface TaskBook {
  /** Reads what earlier lives have left. Throws `STORAGE_FAILED`. */
  load(): Promise<readonly Task[]>
  find(owner: string, taskId: string): Task | undefined
  /** Why there is no room for another one of that size, if there is none: ends that were told are forgotten for it first. */
  noRoom(owner: string, bytes: number): HermesError | undefined
  /** Stores a new task; rejects with `STORAGE_FAILED`, and then it is none. */
  accept(task: Task): Promise<void>
  /** Notes an event; it is stored, however often that has to be tried. */
  note(task: Task, news: TaskNews): void
  /** Resolves once everything noted so far is stored; rejects with `STOPPED`. */
  stored(task: Task): Promise<void>
  /** Calls back each time that more of it is stored; returns the way to stop. */
  watch(task: Task, changed: () => void): () => void
  /** Stored events after a number, as many as fit into one answer, oldest first, with what the answer says beside them. */
  page(task: Task, after: number): { state: TaskState; events: TaskEvent[] }
  /** Forgets tasks whose end has been kept long enough. */
  sweep(): void
  stop(reason: HermesError): void
}

export interface TaskBookOptions {
  readonly journal: Journal
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
}

interface Page {
  readonly task: Task
  /** Numbered and not yet stored. */
  fresh: TaskEvent[]
  /** Numbers whose events are folded, and are to be removed from the journal. */
  folded: number[]
  dirty: boolean
  writing: boolean
  /** Its end has been asked for and given. */
  told: boolean
  waiters: { upTo: number; resolve(): void; reject(error: HermesError): void }[]
  readonly watchers: Set<() => void>
}

export function createTaskBook(options: TaskBookOptions): TaskBook {
  return new JournaledBook(options)
}

class JournaledBook implements TaskBook {
  readonly #options: TaskBookOptions
  /** By owner, then by task id. Bounded by `tasksPerOwner` and `tasksPerNode`. */
  readonly #owners = new Map<string, Map<string, Page>>()
  readonly #pauses = new Set<{ timer: Timer; end(): void }>()
  #count = 0
  #bytes = 0
  #stopped: HermesError | undefined

  constructor(options: TaskBookOptions) {
    this.#options = options
  }

  async load(): Promise<readonly Task[]> {
    const { journal } = this.#options
    const payloads = new Map<string, Uint8Array>()
    const described: (readonly [string, Uint8Array])[] = []
    for await (const [key, value] of journal.entries('tasks')) {
      if (isPayloadKey(key)) payloads.set(key, value)
      else described.push([key, value])
    }
    const tasks: Task[] = []
    for (const [key, value] of described) {
      const task = readTask(key, value, payloads.get(`${key}#payload`))
      const events: TaskEvent[] = []
      for await (const [, stored] of journal.entries('updates', eventsPrefix(task))) events.push(readEvent(stored))
      task.restore(events)
      this.#enter(task)
      tasks.push(task)
    }
    return tasks
  }

  find(owner: string, taskId: string): Task | undefined {
    return this.#owners.get(owner)?.get(taskId)?.task
  }

  noRoom(owner: string, bytes: number): HermesError | undefined {
    const { tasksPerOwner, tasksPerNode, taskBytesPerNode } = this.#options.tunables
    const full = (message: string) => new HermesError('BUSY', { message, retryAfterMs: 1000 })
    const own = () => this.#owners.get(owner)?.size ?? 0
    const isFull = () => own() >= tasksPerOwner || this.#count >= tasksPerNode || this.#bytes + bytes > taskBytesPerNode
    // Ends that have been told make room, of this owner only: nobody's share is taken for another's.
    while (isFull() && this.#forgetTold(owner));
    if (own() >= tasksPerOwner) return full(`${own()} tasks of ${owner} are kept here`)
    if (this.#count >= tasksPerNode) return full(`${this.#count} tasks are kept here`)
    if (this.#bytes + bytes > taskBytesPerNode) return full(`tasks of ${this.#bytes} bytes are kept here`)
    return undefined
  }

  /** Forgets the oldest task of an owner whose end it knows; false when there is none. */
  #forgetTold(owner: string): boolean {
    for (const page of this.#owners.get(owner)?.values() ?? []) {
      if (!page.told || page.writing) continue
      this.#forget(page)
      return true
    }
    return false
  }

  async accept(task: Task): Promise<void> {
    const { journal, clock } = this.#options
    const first = task.add({ type: 'state', state: 'accepted' }, clock.now())
    const page = this.#enter(task)
    page.writing = true
    try {
      await journal.commit([describing(task), payloadChange(task, task.payload), eventChange(task, first)])
    } catch (error) {
      this.#leave(page)
      throw HermesError.from(error, 'STORAGE_FAILED')
    }
    task.stored = first.n
    page.writing = false
    this.#told(page)
    if (page.dirty) void this.#write(page)
  }

  note(task: Task, news: TaskNews): void {
    const page = this.#page(task)
    if (!page) return
    const { clock, tunables } = this.#options
    const before = task.bytes
    page.fresh.push(task.add(news, clock.now()))
    page.folded.push(...task.fold({ events: tunables.taskEvents, bytes: tunables.taskEventBytes }))
    this.#bytes += task.bytes - before
    if (task.ended) {
      // Nobody starts it again: what it was asked with may go.
      this.#bytes -= task.payload.length
      task.payload = new Uint8Array()
    }
    page.dirty = true
    if (!page.writing) void this.#write(page)
  }

  stored(task: Task): Promise<void> {
    const page = this.#page(task)
    if (!page || task.stored >= task.last) return Promise.resolve()
    if (this.#stopped) return Promise.reject(this.#stopped)
    return new Promise((resolve, reject) => page.waiters.push({ upTo: task.last, resolve, reject }))
  }

  watch(task: Task, changed: () => void): () => void {
    const page = this.#page(task)
    if (!page) return () => undefined
    page.watchers.add(changed)
    return () => page.watchers.delete(changed)
  }

  page(task: Task, after: number): { state: TaskState; events: TaskEvent[] } {
    const { folded, stored } = task
    const events: TaskEvent[] = []
    if (folded && folded.n > after && folded.n <= stored) events.push(folded)
    let bytes = 0
    for (const event of task.events) {
      if (event.n <= after || event.n > stored) continue
      bytes += JSON.stringify(event).length
      if (events.length > 0 && bytes > this.#options.tunables.taskPageBytes) break
      events.push(event)
      const page = event.type === 'end' ? this.#page(task) : undefined
      if (page) page.told = true
    }
    return { state: task.storedState, events }
  }

  sweep(): void {
    const { clock, tunables } = this.#options
    const before = clock.now() - tunables.taskKeptMs
    for (const pages of [...this.#owners.values()]) {
      for (const page of [...pages.values()]) {
        const { task } = page
        if (!task.ended || task.endedAt > before || page.writing) continue
        this.#forget(page)
      }
    }
  }

  #forget(page: Page): void {
    const { task } = page
    this.#leave(page)
    const removals: JournalChange[] = [
      { ...describing(task), value: undefined },
      payloadChange(task, undefined),
      ...task.events.map(({ n }) => eventRemoval(task, n)),
    ]
    // What stays behind after a failure is read by the next life, and swept by it.
    this.#options.journal.commit(removals).catch((cause: unknown) => this.#failed('forgetting a task', cause))
  }

  stop(reason: HermesError): void {
    this.#stopped = reason
    for (const pause of [...this.#pauses]) pause.end()
    for (const pages of this.#owners.values()) for (const page of pages.values()) this.#giveUp(page, reason)
  }

  /** Writes until nothing is left to be written; what fails is tried again. */
  async #write(page: Page): Promise<void> {
    const { journal, tunables } = this.#options
    const { task } = page
    page.writing = true
    while (page.dirty) {
      page.dirty = false
      const fresh = page.fresh
      const folded = page.folded
      const { state, last } = task
      page.fresh = []
      page.folded = []
      const kept = new Set(task.events.map(({ n }) => n))
      const changes: JournalChange[] = [
        ...fresh.filter(({ n }) => kept.has(n)).map((event) => eventChange(task, event)),
        ...folded.map((n) => eventRemoval(task, n)),
        describing(task),
        ...(task.ended ? [payloadChange(task, undefined)] : []),
      ]
      try {
        await journal.commit(changes)
      } catch (cause) {
        page.fresh = [...fresh, ...page.fresh]
        page.folded = [...folded, ...page.folded]
        page.dirty = true
        if (this.#stopped) break
        this.#failed(`storing task ${task.origin.taskId}`, cause)
        await this.#pause(tunables.journalRetryMs)
        if (this.#stopped) break
        continue
      }
      task.stored = last
      task.storedState = state
      this.#told(page)
    }
    page.writing = false
    if (this.#stopped) this.#giveUp(page, this.#stopped)
  }

  #told(page: Page): void {
    const { stored } = page.task
    const ready = page.waiters.filter(({ upTo }) => upTo <= stored)
    page.waiters = page.waiters.filter(({ upTo }) => upTo > stored)
    for (const { resolve } of ready) resolve()
    for (const changed of [...page.watchers]) changed()
  }

  #giveUp(page: Page, reason: HermesError): void {
    const waiters = page.waiters
    if (page.writing && waiters.length > 0) return
    page.waiters = []
    for (const { reject } of waiters) reject(reason)
  }

  #pause(ms: number): Promise<void> {
    const { clock } = this.#options
    return new Promise((resolve) => {
      const pause = {
        timer: clock.after(ms, () => pause.end()),
        end: () => {
          clock.clear(pause.timer)
          this.#pauses.delete(pause)
          resolve()
        },
      }
      this.#pauses.add(pause)
    })
  }

  #failed(what: string, cause: unknown): void {
    this.#options.telemetry.emit('journal.failed', { what, cause })
  }

  #page({ origin }: Task): Page | undefined {
    return this.#owners.get(origin.owner)?.get(origin.taskId)
  }

  #enter(task: Task): Page {
    const { owner, taskId } = task.origin
    let pages = this.#owners.get(owner)
    if (!pages) {
      pages = new Map()
      this.#owners.set(owner, pages)
    }
    const page: Page = {
      task,
      fresh: [],
      folded: [],
      dirty: false,
      writing: false,
      told: false,
      waiters: [],
      watchers: new Set(),
    }
    pages.set(taskId, page)
    this.#count++
    this.#bytes += task.bytes + task.payload.length
    return page
  }

  #leave({ task }: Page): void {
    const { owner, taskId } = task.origin
    const pages = this.#owners.get(owner)
    if (!pages?.delete(taskId)) return
    this.#count--
    this.#bytes -= task.bytes + task.payload.length
    if (pages.size === 0) this.#owners.delete(owner)
  }
}
