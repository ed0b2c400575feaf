import { manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createWindow, type SequenceWindow, type WindowOptions } from '../../src/delivery/window.ts'
import { type Bounds, type Item, WindowJudge } from './window-judge.ts'

type Make = (options: WindowOptions<Item>) => SequenceWindow<Item>

/** Small, so that a short run passes every one of them. */
const SMALL: Bounds = { items: 4, bytes: 100, gapMs: 2000 }

type Step =
  | { kind: 'offer'; ahead: number; bytes: number; ordered: boolean }
  | { kind: 'skip' | 'advance'; ahead: number }
  | { kind: 'wait'; ms: number }

const ahead = fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 0, max: 4 }) }, fc.integer({ min: -4, max: 12 }))
const offer: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant('offer'),
  ahead,
  bytes: fc.integer({ min: 1, max: 60 }),
  ordered: fc.constantFrom(true, true, true, true, false),
})
const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: offer },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant<'skip'>('skip'), ahead }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant<'advance'>('advance'), ahead }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant<'wait'>('wait'), ms: fc.integer({ min: 1, max: 3000 }) }) },
  ),
  { minLength: 1, maxLength: 40, size: 'max' },
)

const reached = { admitted: 0, held: 0, stale: 0, timeout: 0, overflow: 0, reconnect: 0 }

/** Runs the steps on a window under the eyes of a judge; places are told from the one that is awaited. */
async function follow(make: Make, list: readonly Step[]): Promise<void> {
  const clock = manualClock()
  const start = 7
  const judge = new WindowJudge(clock, SMALL, start)
  const window = make({
    clock,
    ...SMALL,
    start,
    admit: (item) => judge.admit(item),
    gap: (...told) => judge.gap(...told),
  })
  for (const [id, step] of list.entries()) {
    if (step.kind === 'wait') {
      await clock.timeline.advance(step.ms)
    } else {
      const sequence = Math.max(1, judge.next + step.ahead)
      if (step.kind === 'offer') {
        const item = { id, sequence, bytes: step.bytes, ordered: step.ordered }
        judge.during({ kind: 'offer', sequence, item }, () => window.offer(sequence, item.bytes, item.ordered, item))
      } else {
        judge.during({ kind: step.kind, sequence }, () => {
          window[step.kind](sequence)
          return undefined
        })
      }
    }
    judge.settled(window)
  }
  // Whatever waits is given up in the end, each gap by a timer of its own.
  await clock.timeline.advance(SMALL.gapMs + SMALL.items + 1)
  judge.settled(window)
  if (window.held > 0) throw new Error('something waits for ever')
  window.close()
  if (clock.timeline.pending > 0) throw new Error('a timer is left behind')
  for (const kind of Object.keys(reached) as (keyof typeof reached)[]) reached[kind] += judge.counts[kind]
}

describe('the window of one sender', () => {
  it('admits in order, each once, gives gaps up in time and keeps to its bounds', async () => {
    await fc.assert(
      fc.asyncProperty(steps, (list) => follow(createWindow, list)),
      { numRuns: 1000 },
    )
    console.info(
      `window: ${Object.entries(reached)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', ')}`,
    )
    for (const count of Object.values(reached)) expect(count).toBeGreaterThan(300)
  })

  /** The window of a test written out by hand, with what it did. */
  const scene = (bounds: Bounds, start = 1) => {
    const clock = manualClock()
    const admitted: number[] = []
    const gaps: [number, number, string][] = []
    const window = createWindow<number>({
      clock,
      ...bounds,
      start,
      admit: (sequence) => admitted.push(sequence),
      gap: (...told) => gaps.push(told),
    })
    const send = (sequence: number, bytes = 10, ordered = true) => window.offer(sequence, bytes, ordered, sequence)
    return { clock, admitted, gaps, window, send }
  }

  it('F-09 a gap that is never filled is given up after its time, and told', async () => {
    const { clock, admitted, gaps, window, send } = scene({ items: 32, bytes: 4 * 2 ** 20, gapMs: 2000 })
    const other = scene({ items: 32, bytes: 4 * 2 ** 20, gapMs: 2000 })
    for (const sequence of [1, 2, 3, 4]) expect(send(sequence)).toBe('admitted')
    for (const sequence of [6, 7, 8]) expect(send(sequence)).toBe('held')
    // Nobody else waits: not another sender, and not what is not ordered.
    expect(other.send(1)).toBe('admitted')
    expect(send(9, 10, false)).toBe('admitted')
    expect(admitted).toEqual([1, 2, 3, 4, 9])
    await clock.timeline.advance(1999)
    expect(admitted).toEqual([1, 2, 3, 4, 9])
    await clock.timeline.advance(1)
    expect(admitted).toEqual([1, 2, 3, 4, 9, 6, 7, 8])
    expect(gaps).toEqual([[5, 1, 'timeout']])

    // What comes too late is not started, and changes nothing.
    expect(send(5)).toBe('stale')
    // A sender that has moved on far is not waited for: the distance counts, not only what is held.
    expect(send(10_000)).toBe('admitted')
    expect(gaps.at(-1)).toEqual([10, 9990, 'overflow'])
    expect(send(200)).toBe('stale')
    expect(admitted).toEqual([1, 2, 3, 4, 9, 6, 7, 8, 10_000])
    expect(window.held).toBe(0)
    expect(clock.timeline.pending).toBe(0)
  })

  it('F-09 holds at most 256 envelopes behind a gap, then gives it up at once', () => {
    const { admitted, gaps, send, window } = scene({
      items: DEFAULTS.windowItems,
      bytes: DEFAULTS.windowBytes,
      gapMs: 5000,
    })
    for (let sequence = 2; sequence <= 257; sequence++) expect(send(sequence)).toBe('held')
    expect(window.held).toBe(256)
    expect(send(258)).toBe('admitted')
    expect(gaps).toEqual([[1, 1, 'overflow']])
    expect(admitted).toEqual(Array.from({ length: 257 }, (_, index) => index + 2))
    expect(window.held).toBe(0)
  })

  it('F-09 holds at most 4 MiB behind a gap, then gives it up at once', () => {
    const { admitted, gaps, send, window } = scene({
      items: DEFAULTS.windowItems,
      bytes: DEFAULTS.windowBytes,
      gapMs: 5000,
    })
    const mib = 2 ** 20
    for (const sequence of [2, 3, 4, 5]) expect(send(sequence, mib)).toBe('held')
    expect(send(7, 1)).toBe('admitted')
    expect(gaps).toEqual([
      [1, 1, 'overflow'],
      [6, 1, 'overflow'],
    ])
    expect(admitted).toEqual([2, 3, 4, 5, 7])
    expect(window.held).toBe(0)
  })

  it('releases in order what was held when a new link begins behind it', () => {
    const { admitted, gaps, send, window } = scene(SMALL, 10)
    send(12)
    send(14)
    window.advance(14)
    expect(admitted).toEqual([12, 14])
    expect(gaps).toEqual([
      [10, 2, 'reconnect'],
      [13, 1, 'reconnect'],
    ])
    expect(window.next).toBe(15)
    window.advance(3)
    expect(window.next).toBe(15)
  })

  it('stops when it is closed: nothing is admitted afterwards, and no timer stays', async () => {
    const { admitted, send, window, clock } = scene(SMALL)
    send(2)
    window.close()
    await clock.timeline.advance('1m')
    expect(admitted).toEqual([])
    expect(clock.timeline.pending).toBe(0)
  })
})

describe('the judge of windows notices', () => {
  const wrap =
    (change: (inner: SequenceWindow<Item>, options: WindowOptions<Item>) => Partial<SequenceWindow<Item>>): Make =>
    (options) => {
      const inner = createWindow(options)
      const base: SequenceWindow<Item> = {
        offer: (...args) => inner.offer(...args),
        skip: (sequence) => inner.skip(sequence),
        heldAt: (sequence) => inner.heldAt(sequence),
        advance: (sequence) => inner.advance(sequence),
        get next() {
          return inner.next
        },
        get held() {
          return inner.held
        },
        close: () => inner.close(),
      }
      return Object.defineProperties(base, Object.getOwnPropertyDescriptors(change(inner, options)))
    }

  it.each<[string, Make]>([
    [
      'a window that never gives up',
      (options) =>
        createWindow({
          ...options,
          clock: { ...options.clock, monotonic: () => options.clock.monotonic(), after: () => ({}), clear: () => {} },
        }),
    ],
    ['a window that gives up too early', (options) => createWindow({ ...options, gapMs: options.gapMs / 2 })],
    [
      'a window that admits twice',
      wrap((inner, { admit }) => ({
        offer: (sequence, bytes, ordered, item) => {
          const said = inner.offer(sequence, bytes, ordered, item)
          if (said === 'admitted' && sequence % 5 === 0) admit(item)
          return said
        },
      })),
    ],
    [
      'a window that admits what is stale',
      wrap((inner, { admit }) => ({
        offer: (sequence, bytes, ordered, item) => {
          const said = inner.offer(sequence, bytes, ordered, item)
          if (said !== 'stale') return said
          admit(item)
          return 'admitted'
        },
      })),
    ],
    [
      'a window that keeps no order',
      wrap((inner) => ({ offer: (sequence, bytes, _, item) => inner.offer(sequence, bytes, false, item) })),
    ],
    ['a window that holds too many', (options) => createWindow({ ...options, items: options.items * 3 })],
    ['a window that holds too many bytes', (options) => createWindow({ ...options, bytes: Number.POSITIVE_INFINITY })],
    ['a window that does not tell of gaps', (options) => createWindow({ ...options, gap: () => {} })],
    ['a window that forgets what was refused', wrap(() => ({ skip: () => {} }))],
    ['a window that waits for what a lost link took with it', wrap(() => ({ advance: () => {} }))],
    [
      'a window that makes what is not ordered wait',
      wrap((inner) => ({ offer: (sequence, bytes, _, item) => inner.offer(sequence, bytes, true, item) })),
    ],
  ])('%s', async (_, make) => {
    const run = fc.assert(
      fc.asyncProperty(steps, (list) => follow(make, list)),
      { numRuns: 1000, endOnFailure: true },
    )
    await expect(run).rejects.toThrow('Property failed')
  })
})
