import { HermesError } from '@hermes-peer/protocol'
import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { Task } from '../../../src/calls/tasks/task.ts'
import { createTaskBook, type TaskBook } from '../../../src/calls/tasks/task-book.ts'
import { DEFAULTS, type Tunables } from '../../../src/defaults.ts'
import type { Journal, JournalChange } from '../../../src/journal/journal.ts'
import { createMemoryJournal } from '../../../src/journal/memory-journal.ts'

/** A journal of which single commits can be held up or made to fail. */
function guarded(journal: Journal) {
  let gate: Promise<void> | undefined
  const commits: (readonly JournalChange[])[] = []
  const through: Journal = {
    durable: journal.durable,
    open: () => journal.open(),
    get: (table, key) => journal.get(table, key),
    entries: (table, prefix) => journal.entries(table, prefix),
    close: () => journal.close(),
    async commit(changes) {
      commits.push(changes)
      await gate
      await journal.commit(changes)
    },
  }
  return {
    journal: through,
    commits,
    /** What comes from now on waits; the function given lets it go on, or fail. */
    hold() {
      let decide = (_: 'store' | 'fail'): void => undefined
      gate = new Promise((resolve, reject) => {
        decide = (how) => {
          gate = undefined
          if (how === 'store') resolve()
          else reject(new HermesError('STORAGE_FAILED'))
        }
      })
      gate.catch(() => undefined)
      return (how: 'store' | 'fail') => decide(how)
    },
  }
}

async function keeping(tuning: Partial<Tunables> = {}) {
  const clock = manualClock()
  const stored = createMemoryJournal()
  await stored.open()
  const { journal, commits, hold } = guarded(stored)
  const failures: string[] = []
  const telemetry = { emit: (_: string, { what }: { what: string }) => failures.push(what) } as never
  const life = () => createTaskBook({ journal, clock, tunables: { ...DEFAULTS, ...tuning }, telemetry })
  let count = 0
  const accept = async (book: TaskBook, owner = 'pm', bytes = 10): Promise<Task> => {
    await clock.timeline.advance(1)
    // The keys of later ones come first.
    const id = String(1000 - ++count).padStart(16, '0')
    const task = new Task(
      {
        taskId: `task_${id}`,
        owner,
        via: [],
        messageId: `msg_${id}`,
        capability: 'index',
        effects: 'none',
        correlationId: undefined,
        traceId: '1'.repeat(32),
        priority: 3,
        path: [],
        contentType: 'application/json',
        payloadSha256: '0'.repeat(64),
        acceptedAt: clock.now(),
        expiresAt: clock.now(),
        budgetMs: 1000,
      },
      { payload: new Uint8Array(bytes), envelope: new Uint8Array(10) },
      { state: 'accepted', last: 0, folded: undefined, endedAt: 0 },
    )
    await book.accept(task)
    return task
  }
  const end = (book: TaskBook, task: Task, output: unknown = null) => {
    const payload = { output, status: 'completed' } as never
    book.note(task, { type: 'end', state: 'completed', message_type: 'response', payload })
    return book.stored(task)
  }
  return { clock, life, accept, end, commits, hold, failures }
}

describe('a task that is being stored', () => {
  it('is none for anybody until it is', async () => {
    const { life, accept, hold } = await keeping()
    const book = life()
    const goOn = hold()
    const accepting = accept(book)
    await Promise.resolve()
    await Promise.resolve()
    expect(book.find('pm', 'task_0000000000000999')).toBeUndefined()
    goOn('store')
    const task = await accepting
    expect(book.find('pm', 'task_0000000000000999')).toBe(task)
  })
})

describe('news that cannot be written', () => {
  it('are reported and tried again; nothing else is held up', async () => {
    const { life, accept, end, failures, clock } = await keeping()
    const book = life()
    const [task, other] = [await accept(book), await accept(book)]
    book.note(task, { type: 'partial', data: Symbol('no data') as never })
    await end(book, other)
    expect(other.storedState).toBe('completed')
    expect(failures).toEqual([`storing task ${task.origin.taskId}`])
    await clock.timeline.advance(DEFAULTS.journalRetryMs)
    expect(failures).toHaveLength(2)
  })

  it('while the journal fails are kept only as far as they are not folded, and the rest is told right afterwards', async () => {
    const { life, accept, commits, hold, clock, end } = await keeping({ taskEvents: 4 })
    const book = life()
    const task = await accept(book)
    const goOn = hold()
    for (let i = 1; i <= 100; i++) book.note(task, { type: 'progress', fraction: i / 100 })
    goOn('fail')
    await Promise.resolve()
    await clock.timeline.advance(DEFAULTS.journalRetryMs)
    await book.stored(task)
    const tables = commits.at(-1)?.map(({ table, value }) => `${table} ${value ? 'set' : 'removed'}`)
    // Only `accepted`, the one event that was stored before, has to be removed.
    expect(tables?.sort()).toEqual(['tasks set', ...Array(4).fill('updates set'), 'updates removed'].sort())
    await end(book, task)
    const next = life()
    const [found] = await next.load()
    const { events } = next.page(found as Task, 0)
    expect(events.map(({ n, type }) => `${n} ${type}`)).toEqual([
      '98 snapshot',
      '99 progress',
      '100 progress',
      '101 progress',
      '102 end',
    ])
  })
})

describe('ends that were told', () => {
  it('make room, the oldest first, also in the next life', async () => {
    const { life, accept, end } = await keeping({ tasksPerOwner: 3 })
    const book = life()
    const tasks = [await accept(book), await accept(book), await accept(book)]
    for (const task of tasks) {
      await end(book, task)
      expect(book.noRoom('pm', 10)?.code).toBe('BUSY')
    }
    for (const task of tasks) book.told('pm', task.origin.taskId)
    await Promise.all(tasks.map((task) => book.stored(task)))
    const next = life()
    await next.load()
    expect(next.noRoom('pm', 10)).toBeUndefined()
    const kept = tasks.map(({ origin }) => next.find('pm', origin.taskId) !== undefined)
    expect(kept).toEqual([false, true, true])
  })

  it('are kept where forgetting them would not make room', async () => {
    const { life, accept, end } = await keeping({ taskBytesPerNode: 10_000 })
    const book = life()
    await accept(book, 'other', 8_000)
    const task = await accept(book)
    await end(book, task)
    book.told('pm', task.origin.taskId)
    expect(book.noRoom('pm', 9_000)?.code).toBe('BUSY')
    expect(book.find('pm', task.origin.taskId)).toBe(task)
  })
})

describe('a page of news', () => {
  it('stays within the bytes and the keys of an answer, what is folded included', async () => {
    const { life, accept } = await keeping({ taskEvents: 3, taskPageBytes: 1000, taskPageKeys: 50 })
    const book = life()
    const task = await accept(book)
    const keys = Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`k${i}`, 1]))
    for (const data of [keys, keys, '字'.repeat(250), '字'.repeat(250)]) book.note(task, { type: 'partial', data })
    await book.stored(task)
    const pages: number[][] = []
    for (let after = 0; after < task.last; ) {
      const { events, last } = book.page(task, after)
      expect(last).toBe(5)
      pages.push(events.map(({ n }) => n))
      after = events.at(-1)?.n ?? task.last
    }
    expect(pages).toEqual([[2], [3], [4], [5]])
  })
})
