import { describe, expect, it } from 'vitest'
import { confirmCulprit, confirmEnds, type Trial } from '../src/search/confirm.ts'
import type { Verdict } from '../src/search/kary.ts'

/** Gives the verdicts listed for a commit in turn. */
const script = (verdicts: Record<string, Verdict[]>) => {
  const ran: string[] = []
  const run = async (commit: string): Promise<Trial> => {
    ran.push(commit)
    const verdict = verdicts[commit]?.shift()
    if (verdict === undefined) throw new Error(`unexpected run of ${commit}`)
    return { verdict, summary: `ran ${commit}` }
  }
  return { run, ran }
}
const ends = { good: 'good', bad: 'bad' }

describe('before the search', () => {
  it('the good revision must pass, the bad one fail twice', async () => {
    const { run, ran } = script({ good: ['pass'], bad: ['fail', 'fail'] })
    expect(await confirmEnds(ends, run)).toEqual({ summary: 'ran bad' })
    expect(ran).toHaveLength(3)
  })

  it.each<[string, string, Record<string, Verdict[]>]>([
    ['GOOD_FAILS', 'good fails twice', { good: ['fail', 'fail'], bad: ['fail', 'fail'] }],
    ['FLAKY', 'good fails and then passes', { good: ['fail', 'pass'], bad: ['fail', 'fail'] }],
    ['FLAKY', 'bad fails and passes', { good: ['pass'], bad: ['fail', 'pass'] }],
    ['BAD_PASSES', 'bad passes twice', { good: ['pass'], bad: ['pass', 'pass'] }],
  ])('is %s when %s', async (kind, _, verdicts) => {
    await expect(confirmEnds(ends, script(verdicts).run)).rejects.toMatchObject({ kind })
  })
})

describe('after the search', () => {
  it('the culprit must fail and the commit before it pass', async () => {
    await confirmCulprit({ culprit: 'c', parent: 'p' }, script({ c: ['fail'], p: ['pass'] }).run)
    await confirmCulprit({ culprit: 'c', parent: undefined }, script({ c: ['fail'] }).run)
  })

  it.each<[string, Record<string, Verdict[]>]>([
    ['the culprit passes now', { c: ['pass'], p: ['pass'] }],
    ['the commit before it fails as well', { c: ['fail'], p: ['fail'] }],
  ])('is flaky when %s', async (_, verdicts) => {
    const confirmed = confirmCulprit({ culprit: 'c', parent: 'p' }, script(verdicts).run)
    await expect(confirmed).rejects.toMatchObject({ kind: 'FLAKY' })
  })
})
