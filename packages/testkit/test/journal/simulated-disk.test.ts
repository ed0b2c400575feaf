import type { Journal } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { createTimeline, type Timeline } from '../../src/clock/timeline.ts'
import { journalCompliance } from '../../src/compliance/journal.ts'
import { createSimulatedDisk, type SimulatedDisk } from '../../src/journal/simulated-disk.ts'
import { seededRandom } from '../../src/random/seeded-random.ts'
import { testNetwork } from '../../src/test-network.ts'
import { FAULTY, faulty } from '../support/faulty-journal.ts'

const home = (change: (journal: Journal) => Journal) => async () => {
  const timeline = createTimeline()
  const clock = timeline.clock()
  const disk = createSimulatedDisk({ random: seededRandom(1) })
  return {
    journal: (limits = {}) => change(disk.journal({ clock, limits })),
    settle: <T>(promise: Promise<T>) => timeline.runUntil(promise),
    dispose: async () => undefined,
  }
}

describe('a journal on a simulated disk', () => {
  for (const { name, run } of journalCompliance(home((journal) => journal))) it(name, run)
})

describe('the compliance suite', () => {
  it.each(FAULTY)('catches a journal that %s', async (mistake) => {
    const failed: string[] = []
    for (const { name, run } of journalCompliance(home((journal) => faulty(journal, mistake)))) {
      await run().catch(() => failed.push(name))
    }
    expect(failed).not.toEqual([])
  })
})

const bytes = (text: string) => new TextEncoder().encode(text)
const put = (key: string, value = key) => ({ table: 'pins', key, value: bytes(value) }) as const

async function keys(journal: Journal): Promise<string[]> {
  const found: string[] = []
  for await (const [key] of journal.entries('pins')) found.push(key)
  return found
}

async function life(timeline: Timeline, disk: SimulatedDisk): Promise<{ journal: Journal; halt: () => void }> {
  const clock = timeline.clock()
  const journal = disk.journal({ clock })
  await timeline.runUntil(journal.open())
  return { journal, halt: () => clock.halt() }
}

describe('the disk of a peer in a test network', () => {
  it('is open while the peer runs, outlives its crash, and is let go of when it stops', async () => {
    await using net = testNetwork({ seed: 3 })
    await net.peer('a')
    await net.peer('b', { journal: false })
    const disk = net.disk('a')
    expect(net.disk('a')).toBe(disk)
    const locked = await net.until(
      disk
        .journal({ clock: net.timeline.clock() })
        .open()
        .catch((error: unknown) => error),
    )
    expect(locked).toMatchObject({ code: 'JOURNAL_LOCKED' })
    const free = net.disk('b').journal({ clock: net.timeline.clock() })
    await net.until(free.open())
    await net.crash('a')
    const between = disk.journal({ clock: net.timeline.clock() })
    await net.until(between.open())
    await net.until(between.commit([put('kept')]))
    await net.until(between.close())
    const again = await net.peer('a')
    await net.until(again.stop())
    const after = disk.journal({ clock: net.timeline.clock() })
    await net.until(after.open())
    expect(await net.until(keys(after))).toEqual(['kept'])
  })
})

describe('a simulated disk', () => {
  it('takes virtual time for a write, and none of the real one', async () => {
    const timeline = createTimeline()
    const { journal } = await life(
      timeline,
      createSimulatedDisk({ random: seededRandom(1), writeMs: { min: 3, max: 5 } }),
    )
    await timeline.runUntil(journal.commit([put('a')]))
    expect(timeline.now()).toBeGreaterThanOrEqual(3)
    expect(timeline.now()).toBeLessThanOrEqual(5)
  })

  it('loses or keeps the write on its way at a crash, whole, by the seed; what was acknowledged stays', async () => {
    const outcomes = new Set<string>()
    for (let seed = 0; seed < 40; seed++) {
      const run = async () => {
        const timeline = createTimeline()
        const disk = createSimulatedDisk({ random: seededRandom(seed) })
        const { journal, halt } = await life(timeline, disk)
        await timeline.runUntil(journal.commit([put('acknowledged')]))
        let answered = false
        journal.commit([put('torn-1'), put('torn-2')]).finally(() => {
          answered = true
        })
        // So far that the write has begun: it takes 0.2 ms and more.
        await timeline.advance(0.1)
        journal.commit([put('waiting')]).finally(() => {
          answered = true
        })
        halt()
        disk.crash()
        await timeline.advance('1s')
        expect(answered).toBe(false)
        const next = await life(timeline, disk)
        const found = await timeline.runUntil(keys(next.journal))
        await timeline.runUntil(next.journal.commit([put('later')]))
        expect(disk.writes).toMatchObject({ torn: 1, failed: 0 })
        expect(disk.writes.stored + disk.writes.lost).toBe(3)
        return found.join()
      }
      const found = await run()
      expect(await run()).toBe(found)
      outcomes.add(found)
    }
    expect([...outcomes].sort()).toEqual(['acknowledged', 'acknowledged,torn-1,torn-2'])
  })

  it.each(['full', 'readOnly'] as const)(
    'refuses writes while it is %s, keeps reading, and takes them again',
    async (fault) => {
      const timeline = createTimeline()
      const disk = createSimulatedDisk({ random: seededRandom(1) })
      const { journal } = await life(timeline, disk)
      await timeline.runUntil(journal.commit([put('before')]))
      disk.fail(fault)
      const refused = await timeline.runUntil(journal.commit([put('during')]).catch((error: unknown) => error))
      expect(refused).toMatchObject({ code: 'STORAGE_FAILED', details: { fault } })
      expect(await timeline.runUntil(keys(journal))).toEqual(['before'])
      disk.fail(undefined)
      await timeline.runUntil(journal.commit([put('after')]))
      expect(await timeline.runUntil(keys(journal))).toEqual(['after', 'before'])
      expect(disk.writes).toEqual({ stored: 2, failed: 1, torn: 0, lost: 0 })
    },
  )

  it('stores nothing of a write that a crash meets while the disk is full', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const timeline = createTimeline()
      const disk = createSimulatedDisk({ random: seededRandom(seed) })
      const { journal, halt } = await life(timeline, disk)
      disk.fail('full')
      void journal.commit([put('torn')]).catch(() => undefined)
      await timeline.advance(0.1)
      halt()
      disk.crash()
      expect(await timeline.runUntil(keys((await life(timeline, disk)).journal))).toEqual([])
    }
  })
})
