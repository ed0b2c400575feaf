import { describe, expect, it } from 'vitest'
import { roundsNeeded, type SearchEvent, searchCulprit, type Verdict } from '../src/search/kary.ts'

const commitsOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `c${i}`)
const indexOf = (commit: string): number => Number(commit.slice(1))
const verdictFor =
  (culprit: number) =>
  (commit: string): Verdict =>
    indexOf(commit) < culprit ? 'pass' : 'fail'

describe('k-ary search', () => {
  it('finds the culprit at every place of 1..200 commits with 1..5 testers, within the bound of rounds', async () => {
    let searches = 0
    for (let count = 1; count <= 200; count += count < 20 ? 1 : 9) {
      for (let testers = 1; testers <= 5; testers++) {
        for (let culprit = 0; culprit < count; culprit += count < 40 ? 1 : 3) {
          const verdict = verdictFor(culprit)
          const found = await searchCulprit({
            commits: commitsOf(count),
            parallel: () => testers,
            test: async (commit) => verdict(commit),
          })
          expect(found.suspects).toEqual([`c${culprit}`])
          expect(found.rounds).toBeLessThanOrEqual(roundsNeeded(count, testers))
          searches += 1
        }
      }
    }
    expect(searches).toBeGreaterThan(5_000)
  })

  it('finds the culprit at each of 200 places in 200 commits when verdicts arrive in any order', async () => {
    for (let culprit = 0; culprit < 200; culprit++) {
      let turn = culprit
      const verdict = verdictFor(culprit)
      const found = await searchCulprit({
        commits: commitsOf(200),
        parallel: () => 1 + (culprit % 5),
        test: async (commit, signal) => {
          turn = (turn * 7 + 3) % 11
          for (let i = turn; i > 0; i--) await Promise.resolve()
          signal.throwIfAborted()
          return verdict(commit)
        },
      })
      expect(found.suspects).toEqual([`c${culprit}`])
    }
  })

  it('never tests a commit twice, nor one whose verdict is known', async () => {
    const tested: string[] = []
    await searchCulprit({
      commits: commitsOf(100),
      parallel: () => 3,
      test: async (commit) => {
        tested.push(commit)
        return verdictFor(61)(commit)
      },
    })
    expect(new Set(tested).size).toBe(tested.length)
    expect(tested).not.toContain('c99')
  })

  it('ends runs that no longer matter at once, and says because of which verdict', async () => {
    const events: SearchEvent[] = []
    const ended: string[] = []
    const found = await searchCulprit({
      commits: commitsOf(63),
      parallel: () => 3,
      test: (commit, signal) =>
        new Promise((resolve, reject) => {
          if (commit !== 'c46') return resolve(verdictFor(20)(commit))
          signal.addEventListener('abort', () => {
            ended.push(commit)
            reject(signal.reason)
          })
        }),
      observe: (event) => events.push(event),
    })
    expect(found.suspects).toEqual(['c20'])
    expect(ended).toEqual(['c46'])
    expect(events).toContainEqual({ type: 'irrelevant', commit: 'c46', because: 'c30' })
  })

  it('works around commits that cannot be tested', async () => {
    const skipped = new Set([31, 40, 41])
    const found = await searchCulprit({
      commits: commitsOf(64),
      parallel: () => 3,
      test: async (commit) => (skipped.has(indexOf(commit)) ? 'skip' : verdictFor(44)(commit)),
    })
    expect(found.suspects).toEqual(['c44'])
  })

  it('names every suspect when the commits between cannot be tested', async () => {
    const found = await searchCulprit({
      commits: commitsOf(30),
      parallel: () => 2,
      test: async (commit) => (indexOf(commit) === 11 || indexOf(commit) === 12 ? 'skip' : verdictFor(12)(commit)),
    })
    expect(found.suspects).toEqual(['c11', 'c12', 'c13'])
  })

  it('rejects with the error of a test after ending the others', async () => {
    let aborted = 0
    const search = searchCulprit({
      commits: commitsOf(20),
      parallel: () => 3,
      test: (commit, signal) =>
        commit === 'c9'
          ? Promise.reject(new Error('tester broke'))
          : new Promise((_, reject) =>
              signal.addEventListener('abort', () => {
                aborted += 1
                reject(signal.reason)
              }),
            ),
    })
    await expect(search).rejects.toThrow('tester broke')
    expect(aborted).toBe(2)
  })

  it('ends when the caller cancels', async () => {
    const controller = new AbortController()
    const search = searchCulprit({
      commits: commitsOf(20),
      parallel: () => 2,
      signal: controller.signal,
      test: (_, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    })
    controller.abort(new Error('stopped'))
    await expect(search).rejects.toThrow('stopped')
  })

  it('asks for the number of testers before each round', async () => {
    let alive = 4
    const rounds: number[] = []
    await searchCulprit({
      commits: commitsOf(200),
      parallel: () => Math.max(1, --alive),
      test: async (commit) => verdictFor(150)(commit),
      observe: (event) => event.type === 'round' && rounds.push(event.commits.length),
    })
    expect(rounds.slice(0, 4)).toEqual([3, 2, 1, 1])
  })
})
