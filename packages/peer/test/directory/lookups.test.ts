import { manualClock } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { createLookups } from '../../src/directory/lookups.ts'

function looking() {
  const clock = manualClock()
  const searches: { capability: string; signal: AbortSignal; end: (error?: Error) => void }[] = []
  const lookups = createLookups({
    clock,
    tunables: DEFAULTS,
    search: (capability, signal) =>
      new Promise((resolve, reject) =>
        searches.push({ capability, signal, end: (error) => (error ? reject(error) : resolve()) }),
      ),
  })
  return { clock, searches, lookups, advance: (ms: number) => clock.timeline.advance(ms) }
}

describe('look-ups', () => {
  it('of one capability run once at a time', async () => {
    const { lookups, searches } = looking()
    const first = lookups.run('a', false)
    expect(lookups.run('a', true)).toBe(first)
    expect(searches).toHaveLength(1)
    void lookups.run('b', false)
    expect(searches.map(({ capability }) => capability)).toEqual(['a', 'b'])
  })

  it('are not repeated while the last is fresh, unless nobody usable is known', async () => {
    const { lookups, searches, advance } = looking()
    const run = lookups.run('a', false)
    searches[0]?.end()
    await run
    await advance(DEFAULTS.lookupFreshMs - 1)
    expect(lookups.run('a', false)).toBeUndefined()
    expect(lookups.run('a', true)).toBeDefined()
    expect(searches).toHaveLength(2)
  })

  it('are repeated when the last is old', async () => {
    const { lookups, searches, advance } = looking()
    const run = lookups.run('a', false)
    searches[0]?.end()
    await run
    await advance(DEFAULTS.lookupFreshMs)
    expect(lookups.run('a', false)).toBeDefined()
  })

  it('end after 3 s, and never reject', async () => {
    const { lookups, searches, advance } = looking()
    const run = lookups.run('a', false) as Promise<void>
    await advance(DEFAULTS.lookupTimeoutMs - 1)
    expect(searches[0]?.signal.aborted).toBe(false)
    await advance(1)
    expect(searches[0]?.signal.aborted).toBe(true)
    searches[0]?.end(new Error('aborted'))
    await expect(run).resolves.toBeUndefined()
  })

  it('leave no timer behind, also when stopped', async () => {
    const { lookups, searches, clock } = looking()
    const done = lookups.run('a', false)
    searches[0]?.end()
    await done
    expect(clock.timeline.pending).toBe(0)
    const other = lookups.run('b', false)
    lookups.stop()
    expect(searches[1]?.signal.aborted).toBe(true)
    searches[1]?.end(new Error('aborted'))
    await other
    expect(clock.timeline.pending).toBe(0)
  })
})
