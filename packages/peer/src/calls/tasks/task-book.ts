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
  isSubmitKey,
  readEvent,
  readTask,
  submitChanges,
} from './stored-task.ts'
import type { HandedTo, Task, TaskNews } from './task.ts'

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
  /** Notes who is about to have it, or has it; resolves once that is stored, as `stored` does. */
  hand(task: Task, handed: HandedTo | undefined): Promise<void>
  /** Its end has passed through here on its way from who has it now. */
  told(owner: string, taskId: string): void
  /** Tasks that another agent has now. */
  readonly elsewhere: number
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
  /** Counts its changes, and those of them that are stored. */
  version: number
  storedVersion: number
  /** Its end has been asked for and given. */
  told: boolean
  waiters: { version: number; resolve(): void; reject(error: HermesError): void }[]
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
  #elsewhere = 0
  #bytes = 0
  #stopped: HermesError | undefined

  constructor(options: TaskBookOptions) {
    this.#options = options
  }

  async load(): Promise<readonly Task[]> {
    const { journal } = this.#options
    const parts = new Map<string, Uint8Array>()
    const described: (readonly [string, Uint8Array])[] = []
    for await (const [key, value] of journal.entries('tasks')) {
      if (isSubmitKey(key)) parts.set(key, value)
      else described.push([key, value])
    }
    const tasks: Task[] = []
    for (const [key, value] of described) {
      const task = readTask(key, value, parts)
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
      if (!page.told || page.writing || this.#mayComeAgain(page.task)) continue
      this.#forget(page)
      return true
    }
    return false
  }

  /** What has come by hops has no window that keeps a copy out: it is known by its id for as long as one may come. */
  #mayComeAgain({ origin }: Task): boolean {
    return origin.via.length > 0 && origin.expiresAt > this.#options.clock.now()
  }

  async accept(task: Task): Promise<void> {
    const { journal, clock } = this.#options
    const first = task.add({ type: 'state', state: 'accepted' }, clock.now())
    const page = this.#enter(task)
    page.writing = true
    page.version = 1
    try {
      await journal.commit([describing(task), ...submitChanges(task, true), eventChange(task, first)])
    } catch (error) {
      this.#leave(page)
      throw HermesError.from(error, 'STORAGE_FAILED')
    }
    task.stored = first.n
    page.storedVersion = 1
    page.writing = false
    this.#told(page)
    if (page.dirty) void this.#write(page)
  }

  note(task: Task, news: TaskNews): void {
    const page = this.#page(task)
    if (!page) return
    const { clock, tunables } = this.#options
    const before = task.weight
    page.fresh.push(task.add(news, clock.now()))
    page.folded.push(...task.fold({ events: tunables.taskEvents, bytes: tunables.taskEventBytes }))
    if (task.ended) task.letGo()
    this.#bytes += task.weight - before
    this.#change(page)
  }

  hand(task: Task, handed: HandedTo | undefined): Promise<void> {
    const page = this.#page(task)
    if (!page) return Promise.resolve()
    const before = task.weight
    task.handed = handed
    if (task.elsewhere) {
      task.letGo()
      this.#elsewhere++
    }
    this.#bytes += task.weight - before
    this.#change(page)
    return this.stored(task)
  }

  told(owner: string, taskId: string): void {
    const page = this.#owners.get(owner)?.get(taskId)
    if (page) page.told = true
  }

  get elsewhere(): number {
    return this.#elsewhere
  }

  #change(page: Page): void {
    page.version++
    page.dirty = true
    if (!page.writing) void this.#write(page)
  }

  stored(task: Task): Promise<void> {
    const page = this.#page(task)
    if (!page || page.storedVersion >= page.version) return Promise.resolve()
    if (this.#stopped) return Promise.reject(this.#stopped)
    return new Promise((resolve, reject) => page.waiters.push({ version: page.version, resolve, reject }))
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
        if (endOf(task) > before || page.writing || this.#mayComeAgain(task)) continue
        this.#forget(page)
      }
    }
  }

  #forget(page: Page): void {
    const { task } = page
    this.#leave(page)
    const removals: JournalChange[] = [
      { ...describing(task), value: undefined },
      ...submitChanges(task, false),
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
      const { version } = page
      page.fresh = []
      page.folded = []
      const kept = new Set(task.events.map(({ n }) => n))
      const changes: JournalChange[] = [
        ...fresh.filter(({ n }) => kept.has(n)).map((event) => eventChange(task, event)),
        ...folded.map((n) => eventRemoval(task, n)),
        describing(task),
        ...(task.ended || task.elsewhere ? submitChanges(task, false) : []),
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
      page.storedVersion = version
      this.#told(page)
    }
    page.writing = false
    if (this.#stopped) this.#giveUp(page, this.#stopped)
  }

  #told(page: Page): void {
    const { storedVersion } = page
    const ready = page.waiters.filter(({ version }) => version <= storedVersion)
    page.waiters = page.waiters.filter(({ version }) => version > storedVersion)
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
      version: 0,
      storedVersion: 0,
      told: false,
      waiters: [],
      watchers: new Set(),
    }
    pages.set(taskId, page)
    this.#count++
    if (task.elsewhere) this.#elsewhere++
    this.#bytes += task.weight
    return page
  }

  #leave({ task }: Page): void {
    const { owner, taskId } = task.origin
    const pages = this.#owners.get(owner)
    if (!pages?.delete(taskId)) return
    this.#count--
    if (task.elsewhere) this.#elsewhere--
    this.#bytes -= task.weight
    if (pages.size === 0) this.#owners.delete(owner)
  }
}

/** When it ended, wall clock, ms. What is elsewhere has ended there by the time that it was given: until then, and after it, the way there is kept. */
function endOf({ ended, endedAt, elsewhere, origin }: Task): number {
  if (ended) return endedAt
  return elsewhere ? origin.acceptedAt + origin.budgetMs : Number.POSITIVE_INFINITY
}
