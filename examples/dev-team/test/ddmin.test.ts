import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ddmin } from '../src/repair/ddmin.ts'

describe('ddmin', () => {
  it('finds exactly the needed items when each of them is needed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(59), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 5 }),
        async (needed, parallel) => {
          const found = await ddmin({
            items: Array.from({ length: 60 }, (_, i) => i),
            passes: async (items) => needed.every((item) => items.includes(item)),
            parallel: () => parallel,
          })
          expect(found).toEqual([...needed].sort((a, b) => a - b))
        },
      ),
      { numRuns: 300 },
    )
  })

  it('is 1-minimal for any rule: nothing can be left out of what it finds', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.nat(4095), { maxLength: 6 }),
        async (size, masks) => {
          // Not monotone: some sets pass, their supersets need not.
          const passing = new Set([...masks.map((mask) => mask & (2 ** size - 1)), 2 ** size - 1])
          const passes = async (items: readonly number[]) =>
            passing.has(items.reduce((mask, item) => mask | (1 << item), 0))
          const found = await ddmin({ items: Array.from({ length: size }, (_, i) => i), passes, parallel: () => 3 })
          expect(await passes(found)).toBe(true)
          if (found.length > 1) {
            for (const item of found) expect(await passes(found.filter((other) => other !== item))).toBe(false)
          }
        },
      ),
      { numRuns: 500 },
    )
  })

  it('keeps the order of items and reports each smaller set', async () => {
    const reduced: number[] = []
    const found = await ddmin({
      items: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'],
      passes: async (items) => items.includes('b') && items.includes('g'),
      parallel: () => 2,
      onReduced: (items) => reduced.push(items.length),
    })
    expect(found).toEqual(['b', 'g'])
    expect(reduced.at(-1)).toBe(2)
    expect(reduced).toEqual([...reduced].sort((a, b) => b - a))
  })

  it('needs few trials for one needed item among many', async () => {
    let trials = 0
    await ddmin({
      items: Array.from({ length: 256 }, (_, i) => i),
      passes: async (items) => {
        trials += 1
        return items.includes(77)
      },
      parallel: () => 1,
    })
    expect(trials).toBeLessThanOrEqual(16)
  })

  it('ends the other trials once one passes', async () => {
    let ended = 0
    const found = await ddmin({
      items: [1, 2],
      passes: (items, signal) =>
        items[0] === 1
          ? Promise.resolve(true)
          : new Promise((_, reject) =>
              signal.addEventListener('abort', () => {
                ended += 1
                reject(signal.reason)
              }),
            ),
      parallel: () => 2,
    })
    expect(found).toEqual([1])
    expect(ended).toBe(1)
  })

  it('rejects with the error of a trial', async () => {
    const run = ddmin({ items: [1, 2, 3], passes: () => Promise.reject(new Error('no tester')), parallel: () => 2 })
    await expect(run).rejects.toThrow('no tester')
  })
})
