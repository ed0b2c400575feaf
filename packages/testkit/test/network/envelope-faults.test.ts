import { expect, it } from 'vitest'
import { manualClock } from '../../src/clock/timeline.ts'
import { createEnvelopeFaults } from '../../src/network/envelope-faults.ts'
import { seededRandom } from '../../src/random/seeded-random.ts'

async function run(chances: { drop?: number; duplicate?: number; reorder?: number }, seed = 1, count = 200) {
  const clock = manualClock()
  const faults = createEnvelopeFaults({ random: seededRandom(seed), clock, ...chances })
  const got: { frame: number; after: number }[] = []
  // A Buffer, whose slice() is no copy, and which is used again.
  const frame = Buffer.alloc(1)
  for (let i = 0; i < count; i++) {
    frame[0] = i
    const sent = clock.monotonic()
    faults(frame, (bytes) => got.push({ frame: bytes[0] as number, after: clock.monotonic() - sent }))
    await clock.timeline.advance(10)
  }
  await clock.timeline.advance(400)
  expect(clock.timeline.pending).toBe(0)
  return { got, hits: faults.hits }
}

it('passes everything at once when nothing is to go wrong', async () => {
  const { got, hits } = await run({})
  expect(got).toEqual(Array.from({ length: 200 }, (_, frame) => ({ frame, after: 0 })))
  expect(hits).toEqual({ passed: 200, dropped: 0, duplicated: 0, reordered: 0 })
})

it('drops, duplicates and delays whole frames, and counts what it did', async () => {
  const { got, hits } = await run({ drop: 0.1, duplicate: 0.2, reorder: 0.3 })
  expect(hits.passed + hits.dropped + hits.duplicated + hits.reordered).toBe(200)
  expect(got.length).toBe(200 - hits.dropped + hits.duplicated)
  for (const [count, least, most] of [
    [hits.dropped, 8, 35],
    [hits.duplicated, 20, 55],
    [hits.reordered, 25, 65],
  ] as const) {
    expect(count).toBeGreaterThan(least)
    expect(count).toBeLessThan(most)
  }
  const late = got.filter(({ after }) => after > 0)
  expect(late.length).toBe(hits.duplicated + hits.reordered)
  for (const { after } of late) expect(after >= 1 && after <= 401).toBe(true)
  expect(got.some(({ frame }, index) => frame < (got[index - 1]?.frame ?? 0))).toBe(true)
})

it('does the same for the same seed, and something else for another', async () => {
  const chances = { drop: 0.1, duplicate: 0.1, reorder: 0.1 }
  expect(await run(chances, 5)).toEqual(await run(chances, 5))
  expect(await run(chances, 5)).not.toEqual(await run(chances, 6))
})
