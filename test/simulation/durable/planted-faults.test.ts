import { afterEach, describe, expect, test, vi } from 'vitest'
import type { DurableLog } from './checkers.ts'

/** Runs seeds with a part of the runtime broken on purpose until that checker speaks; returns the names of all that did. */
async function caughtBy(seeds: number, checker: string): Promise<string[]> {
  const { runDurable } = await import('./scenario.ts')
  const names = new Set<string>()
  for (let seed = 1; seed <= seeds && !names.has(checker); seed++) {
    const { broken } = await runDurable({ seed })
    for (const what of broken) names.add(what.split(':')[0] as string)
  }
  return [...names]
}

const TASKS = '../../../packages/peer/src/calls/tasks'

afterEach(() => {
  for (const file of ['task-book.ts', 'drafts.ts', 'task.ts', 'stored-task.ts']) vi.doUnmock(`${TASKS}/${file}`)
  vi.doUnmock('../../../packages/peer/src/calls/effects.ts')
  vi.doUnmock('../../../packages/peer/src/telemetry/balance.ts')
  vi.doUnmock('../../../packages/protocol/src/envelope/seal.ts')
  vi.resetModules()
})

describe('each checker of long work catches the fault it is there for', { timeout: 120_000 }, () => {
  test('an ack before anything is stored', async () => {
    vi.doMock(`${TASKS}/task-book.ts`, async (original) => {
      const real = await original<typeof import('../../../packages/peer/src/calls/tasks/task-book.ts')>()
      return {
        createTaskBook: (options: Parameters<typeof real.createTaskBook>[0]) =>
          // Nothing of it reaches the journal, so that nothing is found there by the next life.
          real.createTaskBook({
            ...options,
            journal: { ...bound(options.journal), durable: true, commit: async () => undefined },
          }),
      }
    })
    expect(await caughtBy(10, 'acknowledgedTasksEnd')).toContain('acknowledgedTasksEnd')
  })

  test('drafts that are sent once and never again', async () => {
    vi.doMock(`${TASKS}/drafts.ts`, async (original) => {
      const real = await original<typeof import('../../../packages/peer/src/calls/tasks/drafts.ts')>()
      return {
        createDrafts: (options: Parameters<typeof real.createDrafts>[0]) => {
          const tunables = { ...options.tunables, resendMs: 1e9, resendCapMs: 1e9 }
          return { ...bound(real.createDrafts({ ...options, tunables })), linked: () => undefined }
        },
      }
    })
    expect(await caughtBy(10, 'ownersAreTold')).toContain('ownersAreTold')
  })

  test('a restart that takes everything for repeatable', async () => {
    vi.doMock('../../../packages/peer/src/calls/effects.ts', () => ({ stricter: () => 'none' }))
    expect(await caughtBy(20, 'onceOverall')).toContain('onceOverall')
  })

  test('a submit that becomes another task each time it arrives', async () => {
    vi.doMock(`${TASKS}/task-book.ts`, async (original) => {
      const real = await original<typeof import('../../../packages/peer/src/calls/tasks/task-book.ts')>()
      return {
        createTaskBook: (options: Parameters<typeof real.createTaskBook>[0]) => {
          const book = real.createTaskBook(options)
          let joining = 0
          return {
            ...bound(book),
            // What a submit is looked up by is not found; watches still find it.
            find: (owner: string, taskId: string) =>
              new Error().stack?.includes('.joined') && ++joining > 0 ? undefined : book.find(owner, taskId),
          }
        },
      }
    })
    expect(await caughtBy(20, 'startedOncePerLife')).toContain('startedOncePerLife')
  })

  test('news that are told before they are stored', async () => {
    vi.doMock(`${TASKS}/task-book.ts`, async (original) => {
      const real = await original<typeof import('../../../packages/peer/src/calls/tasks/task-book.ts')>()
      return {
        createTaskBook: (options: Parameters<typeof real.createTaskBook>[0]) => {
          const book = real.createTaskBook(options)
          return {
            ...bound(book),
            page(task: Parameters<typeof book.page>[0], after: number) {
              task.stored = task.last
              task.storedState = task.state
              // And each of them again, from the first.
              return book.page(task, Math.max(0, after - 1))
            },
          }
        },
      }
    })
    expect(await caughtBy(10, 'newsInOrder')).toContain('newsInOrder')
  })

  test('signatures that are not checked', async () => {
    vi.doMock('../../../packages/protocol/src/envelope/seal.ts', async (original) => {
      const real = await original<typeof import('../../../packages/protocol/src/envelope/seal.ts')>()
      return { ...real, verifyEnvelope: (frame: { header: Uint8Array }) => real.leafOf(frame.header) }
    })
    expect(await caughtBy(10, 'nothingForged')).toContain('nothingForged')
  })

  test('submits that are counted twice', async () => {
    vi.doMock('../../../packages/peer/src/telemetry/balance.ts', async (original) => {
      const real = await original<typeof import('../../../packages/peer/src/telemetry/balance.ts')>()
      return {
        createLedger: () => {
          const ledger = real.createLedger()
          const end = (well: boolean) => {
            ledger.end(well)
            ledger.end(well)
          }
          return { ...ledger, end }
        },
      }
    })
    expect(await caughtBy(3, 'balanceHolds')).toContain('balanceHolds')
  })

  test('an owner that is told two ends', async () => {
    const { oneEnd } = await import('./checkers.ts')
    const task = {
      id: 'a-1',
      ends: [
        { state: 'completed', at: 1 },
        { state: 'cancelled', at: 2 },
      ],
    }
    const log = { tasks: [task] } as unknown as DurableLog
    expect(oneEnd(log)).toEqual(['a-1 has several ends: completed, cancelled'])
    expect(oneEnd({ tasks: [{ ...task, ends: task.ends.slice(0, 1) }] } as unknown as DurableLog)).toEqual([])
  })
})

/** The methods of an object of a class, for one that is to be changed in a part. */
function bound<T extends object>(object: T): T {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== 'constructor')
  return Object.fromEntries(
    methods.map((name) => [name, (object as Record<string, (...args: never[]) => unknown>)[name]?.bind(object)]),
  ) as T
}
