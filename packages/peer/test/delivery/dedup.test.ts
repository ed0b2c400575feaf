import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { manualClock } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createDedup, type Dedup, type DedupOptions, type WorkRecord } from '../../src/delivery/dedup.ts'
import { follow, KEY, type Make, outcome, seen, steps } from './dedup-follow.ts'
import type { Limits } from './dedup-model.ts'
import { inboxScene } from './inbox-scene.ts'

/** A million as the field tells it; fewer where time is short. */
const MANY = process.env.HERMES_TEST_TIER === 'long' ? 1_000_000 : 50_000

/** As `node --expose-gc` would offer it. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
}

describe('deduplication', () => {
  it('remembers each started piece of work, within shares, forgetting what is settled first', () => {
    fc.assert(
      fc.property(steps, (list) => follow(createDedup, list)),
      { numRuns: 1000 },
    )
    console.info(
      `dedup: ${Object.entries(seen)
        .map(([what, count]) => `${what} ${count}`)
        .join(', ')}`,
    )
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(100)
  })

  const full = (more: Partial<Limits> = {}) => {
    const clock = manualClock()
    const limits = {
      idsPerSender: DEFAULTS.dedupIdsPerSender,
      bytesPerSender: DEFAULTS.dedupBytesPerSender,
      idsPerNode: DEFAULTS.dedupIdsPerNode,
      ...more,
    }
    const dedup = createDedup({ now: () => clock.now(), ...limits })
    const serve = (sender: string, id: string, bytes = 1, settled = true): WorkRecord | undefined => {
      const record = dedup.begin(sender, id, KEY, clock.now() + 60_000, 'leaf')
      if (!record) return undefined
      record.state = 'running'
      dedup.finish(sender, record, outcome(bytes))
      if (settled) dedup.settle(sender, record)
      return record
    }
    return { clock, dedup, serve }
  }

  it(`F-11 ${MANY} ids of one sender take no more than its share, and not one of another sender`, () => {
    const { dedup, serve } = full()
    for (let i = 0; i < 100; i++) expect(serve('quiet', `quiet ${i}`)).toBeDefined()
    for (let i = 0; i < MANY; i++) serve('loud', `loud ${i}`)
    expect(dedup.size).toBe(DEFAULTS.dedupIdsPerSender + 100)
    for (let i = 0; i < 100; i++) expect(dedup.find('quiet', `quiet ${i}`)?.state).toBe('done')
    expect(dedup.find('loud', `loud ${MANY - 1}`)).toBeDefined()
    expect(dedup.find('loud', 'loud 0')).toBeUndefined()
  })

  it('F-11 a copy is not started again as long as it is acceptable, and expires with what is remembered of it', async () => {
    const { clock, dedup, started, frame, receive } = inboxScene()
    const life = 60_000
    const begun = clock.now()
    const first = frame('msg_aaaaaaaaaaaaaaaa', 1, begun + life)
    expect(receive(first)).toBe('started')
    let sequence = 1
    /** At a time after the first: the same bytes, and another attempt of the same work. */
    const copies = async (at: number): Promise<string[]> => {
      while (clock.now() < begun + at) {
        await clock.timeline.advance(Math.min(1000, begun + at - clock.now()))
        dedup.sweep()
      }
      return [receive(first), receive(frame('msg_aaaaaaaaaaaaaaaa', ++sequence, begun + life))]
    }
    const tolerated = life + DEFAULTS.clockToleranceMs
    expect(await copies(1)).toEqual(['duplicate', 'duplicate'])
    expect(await copies(life / 2)).toEqual(['duplicate', 'duplicate'])
    expect(await copies(life - 1)).toEqual(['duplicate', 'duplicate'])
    expect(await copies(life + 1)).toEqual(['duplicate', 'duplicate'])
    expect(await copies(tolerated)).toEqual(['duplicate', 'duplicate'])
    expect(await copies(tolerated + 1)).toEqual(['EXPIRED', 'EXPIRED'])
    expect(await copies(10 * life)).toEqual(['EXPIRED', 'EXPIRED'])
    expect(started).toEqual(['msg_aaaaaaaaaaaaaaaa'])
    expect(dedup.size).toBe(0)
    // Nothing is left in the way of new work.
    expect(receive(frame('msg_bbbbbbbbbbbbbbbb', ++sequence, clock.now() + life))).toBe('started')
  })

  it('a newcomer finds room in a node that others have filled, at the cost of the largest share', () => {
    const { dedup, serve } = full({ idsPerNode: 10 })
    for (let i = 0; i < 6; i++) serve('large', `${i}`)
    for (let i = 0; i < 4; i++) serve('small', `${i}`)
    expect(serve('new', '0')).toBeDefined()
    expect(dedup.find('large', '0')).toBeUndefined()
    expect(dedup.find('large', '1')).toBeDefined()
    expect(dedup.find('small', '0')).toBeDefined()
    expect(dedup.size).toBe(10)
  })

  it('of answers handed back over hops only the digest is kept where bytes are short, and all of them is remembered', () => {
    const { dedup, serve } = full({ bytesPerSender: 100 })
    for (const id of ['first', 'second', 'third']) {
      dedup.passed('far', serve('far', id, 60, false) as WorkRecord)
    }
    const first = dedup.find('far', 'first')
    expect(first).toMatchObject({ state: 'done', outcome: undefined, digest: expect.stringMatching(/^[0-9a-f]{64}$/) })
    expect(dedup.find('far', 'third')?.outcome?.payload).toHaveLength(60)
    // One whose answer has not come anywhere is kept whole.
    serve('far', 'fourth', 60, false)
    expect(serve('far', 'fifth', 60, false)).toBeDefined()
    expect(dedup.find('far', 'third')?.outcome).toBeUndefined()
    expect(dedup.find('far', 'fourth')?.outcome?.payload).toHaveLength(60)
  })

  it('F-11 is busy rather than forgetful when nothing of a share is settled', () => {
    const { dedup, serve } = full({ idsPerSender: 50 })
    for (let i = 0; i < 50; i++) expect(serve('slow', `${i}`, 1, false)).toBeDefined()
    expect(serve('slow', '50', 1, false)).toBeUndefined()
    expect(serve('other', '0')).toBeDefined()
    for (let i = 0; i < 50; i++) expect(dedup.find('slow', `${i}`)).toBeDefined()
    dedup.settle('slow', dedup.find('slow', '7') as WorkRecord)
    expect(serve('slow', '50', 1, false)).toBeDefined()
    expect(dedup.find('slow', '7')).toBeUndefined()
  })

  it('is busy when 16 MiB of answers have not been fetched, until some have', () => {
    const { dedup, serve } = full()
    const mib = 2 ** 20
    for (let i = 0; i < 17; i++) expect(serve('slow', `${i}`, mib, false)).toBeDefined()
    expect(serve('slow', '17', mib, false)).toBeUndefined()
    expect(serve('other', '0', mib)).toBeDefined()
    dedup.settle('slow', dedup.find('slow', '3') as WorkRecord)
    expect(dedup.find('slow', '3')).toBeUndefined()
    expect(serve('slow', '17', mib, false)).toBeDefined()
  })

  it('keeps a mark of refusal until it expires, and gives no promise for what has begun', () => {
    const { clock, dedup, serve } = full()
    serve('a', 'begun')
    expect(dedup.refuse('a', 'begun', clock.now() + 1000)).toBe(false)
    expect(dedup.refuse('a', 'unseen', clock.now() + 1000)).toBe(true)
    expect(dedup.refuse('a', 'unseen', clock.now() + 5000)).toBe(true)
    clock.jumpWall(5000)
    dedup.sweep()
    expect(dedup.find('a', 'unseen')?.state).toBe('refused')
    clock.jumpWall(1)
    dedup.sweep()
    expect(dedup.find('a', 'unseen')).toBeUndefined()
  })

  it('F-11 holds on to nothing that has expired, however long its sender goes on', async () => {
    const { clock, dedup, serve } = full()
    const answers: WeakRef<Uint8Array>[] = []
    dedup.begin('busy', 'long', KEY, clock.now() + 60_000, 'leaf')
    for (let i = 0; i < 3000; i++) {
      const record = serve('busy', `${i}`, 1000) as WorkRecord
      if (record.outcome) answers.push(new WeakRef(record.outcome.payload))
      clock.jumpWall(1000)
      dedup.sweep()
    }
    expect(dedup.size).toBeLessThan(70)
    // A WeakRef holds its target until the end of the turn in which it was made.
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
    expect(answers.filter((answer) => answer.deref() !== undefined).length).toBeLessThan(1500)
  })

  it('never forgets what runs, however long it takes', () => {
    const { clock, dedup } = full()
    const record = dedup.begin('a', 'long', KEY, clock.now() + 1000, 'leaf') as WorkRecord
    record.state = 'running'
    clock.jumpWall(3_600_000)
    dedup.sweep()
    expect(dedup.find('a', 'long')).toBe(record)
    dedup.finish('a', record, outcome(5))
    dedup.sweep()
    expect(dedup.size).toBe(0)
  })
})

describe('the comparison with the model notices', () => {
  const wrap =
    (change: (inner: Dedup, options: DedupOptions) => Partial<Dedup>): Make =>
    (options) => {
      const inner = createDedup(options)
      const methods: Omit<Dedup, 'size'> = {
        find: (...args) => inner.find(...args),
        begin: (...args) => inner.begin(...args),
        withdraw: (...args) => inner.withdraw(...args),
        finish: (...args) => inner.finish(...args),
        settle: (...args) => inner.settle(...args),
        refuse: (...args) => inner.refuse(...args),
        passed: (...args) => inner.passed(...args),
        sweep: () => inner.sweep(),
        ...change(inner, options),
      }
      return Object.defineProperty(methods, 'size', { get: () => inner.size }) as Dedup
    }

  it.each<[string, Make]>([
    [
      'a memory that forgets unsettled records',
      wrap((inner) => ({
        finish: (sender, record, answer) => {
          inner.finish(sender, record, answer)
          inner.settle(sender, record)
        },
      })),
    ],
    ['a memory that never forgets what is settled', wrap(() => ({ settle: () => {} }))],
    [
      'a memory that is shared by all senders',
      wrap((inner) => ({ begin: (_, ...rest) => inner.begin('a', ...rest), find: (_, id) => inner.find('a', id) })),
    ],
    [
      'a memory without a bound of bytes',
      (options) => createDedup({ ...options, bytesPerSender: Number.POSITIVE_INFINITY }),
    ],
    ['a memory with a larger share', (options) => createDedup({ ...options, idsPerSender: options.idsPerSender + 1 })],
    [
      'a memory without a bound for the node',
      (options) => createDedup({ ...options, idsPerNode: Number.POSITIVE_INFINITY }),
    ],
    ['a memory that forgets too early', (options) => createDedup({ ...options, now: () => options.now() + 1000 })],
    ['a memory that never forgets what has expired', wrap(() => ({ sweep: () => {} }))],
    [
      'a memory that drops what runs',
      wrap((inner, { now }) => ({
        sweep: () => {
          inner.sweep()
          for (const sender of ['a', 'b', 'c']) {
            for (let id = 0; id < 8; id++) {
              const record = inner.find(sender, `msg_${id}`)
              if (record && record.expiresAt < now()) inner.withdraw(sender, record)
            }
          }
        },
      })),
    ],
    ['a memory that promises too much', wrap((inner) => ({ refuse: (...args) => inner.refuse(...args) || true }))],
    [
      'a memory that keeps no mark',
      wrap((inner) => ({ refuse: (sender, id) => inner.find(sender, id) === undefined })),
    ],
  ])('%s', (_, make) => {
    const run = (): void =>
      fc.assert(
        fc.property(steps, (list) => follow(make, list)),
        { numRuns: 1000, endOnFailure: true },
      )
    expect(run).toThrow('Property failed')
  })
})
