import { HermesError, type TaskEvent, type TaskState } from '@hermes-peer/protocol'
import { eventsPrefix, isSubmitKey, readEvent, readTask } from './stored-task.ts'
import type { HandedTo, Task, TaskNews } from './task.ts'
import { createTaskPage, type TaskPage, type TaskPageOptions } from './task-page.ts'

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
  /** Whether that owner has as many tasks here as it may. */
  crowded(owner: string): boolean
  /** Its end has arrived at its owner, or has passed through here on its way from who has it now. */
  told(owner: string, taskId: string): void
  /** Tasks that another agent has now. */
  readonly elsewhere: number
  /** Resolves once everything noted so far is stored; rejects with `STOPPED`. */
  stored(task: Task): Promise<void>
  /** Calls back each time that more of it is stored; returns the way to stop. */
  watch(task: Task, changed: () => void): () => void
  /** Stored events after a number, as many as fit into one answer, oldest first, with what the answer says beside them. */
  page(task: Task, after: number): { state: TaskState; last: number; events: TaskEvent[] }
  /** Forgets tasks whose end has been kept long enough. */
  sweep(): void
  stop(reason: HermesError): void
}

export interface TaskBookOptions extends TaskPageOptions {}

export function createTaskBook(options: TaskBookOptions): TaskBook {
  return new JournaledBook(options)
}

class JournaledBook implements TaskBook {
  readonly #options: TaskBookOptions
  /** By owner, then by task id, oldest first. Bounded by `tasksPerOwner` and `tasksPerNode`. */
  readonly #owners = new Map<string, Map<string, TaskPage>>()
  #count = 0
  #elsewhere = 0
  #bytes = 0

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
      tasks.push(task)
    }
    // Keys are in no order: the oldest goes first, as in the life before.
    tasks.sort((one, other) => one.origin.acceptedAt - other.origin.acceptedAt)
    for (const task of tasks) this.#enter(createTaskPage(task, this.#options, true))
    return tasks
  }

  find(owner: string, taskId: string): Task | undefined {
    const page = this.#owners.get(owner)?.get(taskId)
    return page?.known ? page.task : undefined
  }

  noRoom(owner: string, bytes: number): HermesError | undefined {
    const { tasksPerOwner, tasksPerNode, taskBytesPerNode } = this.#options.tunables
    const full = (message: string) => new HermesError('BUSY', { message, retryAfterMs: 1000 })
    const own = this.#owners.get(owner)?.size ?? 0
    // Ends that have been told make room, of this owner only: nobody's share is taken for another's.
    const going: TaskPage[] = []
    let freed = 0
    /** What there is too much of. */
    const over = (): 'own' | 'count' | 'bytes' | undefined => {
      if (own - going.length >= tasksPerOwner) return 'own'
      if (this.#count - going.length >= tasksPerNode) return 'count'
      return this.#bytes - freed + bytes > taskBytesPerNode ? 'bytes' : undefined
    }
    if (over()) {
      for (const page of this.#owners.get(owner)?.values() ?? []) {
        if (!page.task.told || this.#mayComeAgain(page.task)) continue
        going.push(page)
        freed += page.task.weight
        if (!over()) break
      }
    }
    switch (over()) {
      // Where it would make too little room, nothing is forgotten for it.
      case 'own':
        return full(`${own} tasks of ${owner} are kept here`)
      case 'count':
        return full(`${this.#count} tasks are kept here`)
      case 'bytes':
        return full(`tasks of ${this.#bytes} bytes are kept here`)
      default:
        for (const page of going) this.#forget(page)
        return undefined
    }
  }

  /** What has come by hops has no window that keeps a copy out: it is known by its id for as long as one may come. */
  #mayComeAgain({ origin }: Task): boolean {
    return origin.via.length > 0 && origin.expiresAt > this.#options.clock.now()
  }

  async accept(task: Task): Promise<void> {
    const page = createTaskPage(task, this.#options)
    const before = task.weight
    this.#enter(page)
    const accepting = page.accept()
    this.#bytes += task.weight - before
    try {
      await accepting
    } catch (error) {
      this.#leave(page)
      throw HermesError.from(error, 'STORAGE_FAILED')
    }
  }

  note(task: Task, news: TaskNews): void {
    const page = this.#page(task)
    if (!page) return
    const before = task.weight
    page.note(news)
    this.#bytes += task.weight - before
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
    page.changed()
    return page.stored()
  }

  crowded(owner: string): boolean {
    return (this.#owners.get(owner)?.size ?? 0) >= this.#options.tunables.tasksPerOwner
  }

  told(owner: string, taskId: string): void {
    const page = this.#owners.get(owner)?.get(taskId)
    if (!page || page.task.told) return
    page.task.told = true
    page.changed()
  }

  get elsewhere(): number {
    return this.#elsewhere
  }

  stored(task: Task): Promise<void> {
    return this.#page(task)?.stored() ?? Promise.resolve()
  }

  watch(task: Task, changed: () => void): () => void {
    return this.#page(task)?.watch(changed) ?? (() => undefined)
  }

  page(task: Task, after: number): { state: TaskState; last: number; events: TaskEvent[] } {
    const { taskPageBytes, taskPageKeys } = this.#options.tunables
    const { folded, stored } = task
    const events: TaskEvent[] = []
    let bytes = 0
    let keys = 0
    for (const event of folded ? [folded, ...task.events] : task.events) {
      if (event.n <= after || event.n > stored) continue
      const size = task.sizeOf(event)
      bytes += size.bytes
      keys += size.keys
      if (events.length > 0 && (bytes > taskPageBytes || keys > taskPageKeys)) break
      events.push(event)
    }
    return { state: task.storedState, last: stored, events }
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

  #forget(page: TaskPage): void {
    this.#leave(page)
    page.forget()
  }

  stop(reason: HermesError): void {
    for (const pages of this.#owners.values()) for (const page of pages.values()) page.stop(reason)
  }

  #page({ origin }: Task): TaskPage | undefined {
    return this.#owners.get(origin.owner)?.get(origin.taskId)
  }

  #enter(page: TaskPage): void {
    const { task } = page
    const { owner, taskId } = task.origin
    let pages = this.#owners.get(owner)
    if (!pages) {
      pages = new Map()
      this.#owners.set(owner, pages)
    }
    pages.set(taskId, page)
    this.#count++
    if (task.elsewhere) this.#elsewhere++
    this.#bytes += task.weight
  }

  #leave({ task }: TaskPage): void {
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
