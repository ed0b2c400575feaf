import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Observed } from '../checkers.ts'
import type { DurableLog } from './checkers.ts'

/** Runs seeds with a part of the runtime broken on purpose until these checkers have spoken; returns the names of all that did. */
async function caughtBy(seeds: number, checkers: string | string[], work = {}): Promise<string[]> {
  const [{ runDurable }, { createKeyRing }] = [await import('./scenario.ts'), await import('../stage.ts')]
  const wanted = [checkers].flat()
  const keys = createKeyRing()
  const names = new Set<string>()
  for (let seed = 1; seed <= seeds && !wanted.every((name) => names.has(name)); seed++) {
    const { broken } = await runDurable({ seed, keys, work })
    for (const what of broken) names.add(what.split(':')[0] as string)
  }
  return [...names]
}

const PEER = '../../../packages/peer/src'
const TASKS = `${PEER}/calls/tasks`
const WINDOW = `${PEER}/delivery/window.ts`

const replaced = new Set<string>()

/** Replaces exports of a module from its next import on. */
function plant<Module>(path: string, make: (real: Module) => Partial<Module>): void {
  replaced.add(path)
  vi.doMock(path, async (original) => {
    const real = await original<object>()
    return { ...real, ...make(real as Module) }
  })
}

afterEach(() => {
  for (const file of ['task-book.ts', 'drafts.ts', 'task.ts', 'stored-task.ts']) vi.doUnmock(`${TASKS}/${file}`)
  vi.doUnmock('../../../packages/peer/src/calls/effects.ts')
  vi.doUnmock('../../../packages/peer/src/telemetry/balance.ts')
  vi.doUnmock('../../../packages/protocol/src/envelope/seal.ts')
  for (const path of replaced) vi.doUnmock(path)
  replaced.clear()
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
    expect(await caughtBy(10, 'acknowledgedTasksEnd', { submit: 25 })).toContain('acknowledgedTasksEnd')
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
          return changed(book, (real) => ({
            // What a submit is looked up by is not found; watches still find it.
            find: (owner: string, taskId: string) =>
              new Error().stack?.includes('.joined') && ++joining > 0 ? undefined : real.find(owner, taskId),
          }))
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
          return changed(book, (real) => ({
            page(task: Parameters<typeof real.page>[0], after: number) {
              task.stored = task.last
              task.storedState = task.state
              // And each of them again, from the first.
              return real.page(task, Math.max(0, after - 1))
            },
          }))
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

  test('work that is no task: each of several faults that do not touch one another is told by its own checker', async () => {
    // No bound of calls in flight, of envelopes held, of handlers that run.
    plant<typeof import('../../../packages/peer/src/calls/slots.ts')>(`${PEER}/calls/slots.ts`, (real) => ({
      createSlots(options) {
        const slots = real.createSlots(options)
        return {
          take: (agentId, _most, priority, enter) => slots.take(agentId, Number.POSITIVE_INFINITY, priority, enter),
          get inFlight() {
            return slots.inFlight
          },
        }
      },
    }))
    // A deadline that is kept too late.
    plant<typeof import('../../../packages/peer/src/call-spec.ts')>(`${PEER}/call-spec.ts`, (real) => ({
      callSpec(...args) {
        const spec = real.callSpec(...args)
        return { ...spec, deadline: spec.deadline + 1_000 }
      },
    }))
    // A piece that is lost between the wire and its reader.
    plant<typeof import('../../../packages/peer/src/streams/inflow.ts')>(`${PEER}/streams/inflow.ts`, (real) => ({
      createInflow(options) {
        let pieces = 0
        return changed(real.createInflow(options), (inflow) => ({
          async next() {
            const piece = await inflow.next()
            return piece.kind === 'data' && ++pieces === 3 ? inflow.next() : piece
          },
        }))
      },
    }))
    // A lease that runs out for nobody.
    plant<typeof import('../../../packages/peer/src/sessions/table.ts')>(`${PEER}/sessions/table.ts`, (real) => ({
      createSessions: (options) => changed(real.createSessions(options), () => ({ lease: () => undefined })),
    }))
    // Neither caller nor callee looks at the path.
    plant<typeof import('../../../packages/peer/src/routing/router.ts')>(`${PEER}/routing/router.ts`, (real) => ({
      createRouter(options) {
        const router = real.createRouter(options)
        return { ...router, choose: (need, how) => router.choose({ ...need, path: [] }, how) }
      },
    }))
    plant<typeof import('../../../packages/peer/src/calls/start-check.ts')>(`${PEER}/calls/start-check.ts`, (real) => ({
      checkStart: (facts) => real.checkStart({ ...facts, header: { ...facts.header, path: [] } }),
    }))
    // Calls that are counted as begun, and never as ended.
    plant<typeof import('../../../packages/peer/src/telemetry/balance.ts')>(`${PEER}/telemetry/balance.ts`, (real) => ({
      createLedger: () => ({ ...real.createLedger(), end: () => undefined }),
    }))
    const checkers = [
      'queuesWithinBounds',
      'endsInTime',
      'streamsAreWhole',
      'leasesEnd',
      'cyclesAreRefused',
      'everythingDrains',
    ]
    const work = { submit: 2, stream: 6, ring: 6, lease: 6, burst: 1 }
    expect(await caughtBy(10, checkers, work)).toEqual(expect.arrayContaining(checkers))
  })

  test('a restart that begins no new life: what was sent to the former one counts again', async () => {
    plant<typeof import('../../../packages/peer/src/identity/epoch.ts')>(`${PEER}/identity/epoch.ts`, () => ({
      memoryEpochStore: () => ({ next: () => Date.UTC(2026, 0, 1) }),
    }))
    expect(await caughtBy(15, 'nothingReplayed')).toContain('nothingReplayed')
  })

  test('a window that lets everything through as it comes', async () => {
    plant<typeof import('../../../packages/peer/src/delivery/window.ts')>(WINDOW, (real) => ({
      createWindow: (options) =>
        changed(real.createWindow(options), () => ({
          offer(_sequence, _bytes, _ordered, item) {
            options.admit(item)
            return 'admitted'
          },
        })),
    }))
    expect(await caughtBy(10, 'admissionOrder')).toContain('admissionOrder')
  })

  test('queues that know no bound: each of the three is told', async () => {
    const { BOUNDS, queuesWithinBounds } = await import('./bounds.ts')
    const ids = (i: number) => ({ messageId: `m${i}`, traceId: '' })
    const seen = (event: (i: number) => object, times: number) =>
      Array.from({ length: times }, (_, i) => ({ at: 1, agentId: 'a', life: 1, event: event(i) }) as Observed)
    const attempt = (i: number) => ({ type: 'call.attempt', ...ids(i), capability: 'call_once', agentId: 'b' })
    const received = (i: number) => ({ type: 'envelope.received', ...ids(i), from: 'b', sequence: i + 1 })
    const started = (i: number) => ({ type: 'handler.started', ...ids(i), from: 'b', capability: 'call_once' })
    const { inFlightPerPeer: most, windowItems: items, concurrency } = BOUNDS
    const told = (...observed: Observed[][]) => queuesWithinBounds({ observed: observed.flat() })
    expect(told(seen(attempt, most + 1))).toEqual([`a/1 → b: ${most + 1} calls in flight`])
    expect(told(seen(received, items + 1))).toEqual([`a/1 ← b: ${items + 1} envelopes held`])
    const places = concurrency.call_once
    expect(told(seen(started, places + 1))).toEqual([`a/1 call_once: ${places + 1} handlers at a time`])
    expect(told(seen(attempt, most), seen(received, items), seen(started, places))).toEqual([])
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

/** An object of a class with other methods in place of some of its own. */
function changed<T extends object>(object: T, make: (real: T) => Partial<T>): T {
  const other = make(object)
  return new Proxy(object, {
    get(target, name) {
      if (Object.hasOwn(other, name)) return other[name as keyof T]
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set: (target, name, value) => Reflect.set(target, name, value, target),
  })
}

/** The methods of an object of a class, for one that is to be changed in a part. */
function bound<T extends object>(object: T): T {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== 'constructor')
  return Object.fromEntries(
    methods.map((name) => [name, (object as Record<string, (...args: never[]) => unknown>)[name]?.bind(object)]),
  ) as T
}
