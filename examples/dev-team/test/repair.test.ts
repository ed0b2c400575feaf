import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { borrowObjects } from '../src/git/copy.ts'
import { copyCommits } from '../src/git/own-objects.ts'
import { openRepository } from '../src/git/repository.ts'
import { addWorktree, type Worktree } from '../src/git/worktree.ts'
import { isTestFile, normalizeProposal } from '../src/repair/accept-proposal.ts'
import { reduceReversal } from '../src/repair/reduce-reversal.ts'
import { reverseCommit } from '../src/repair/reversal.ts'
import { createRepository, digest, type TestRepository } from './support/repository.ts'

let place: string
let input: TestRepository
const begin = (): void => {
  place = mkdtempSync(join(tmpdir(), 'dev-team-test-'))
  input = createRepository(join(place, 'input'))
}
const end = (): void => rmSync(place, { recursive: true, force: true })

const open = async (culprit = 'HEAD'): Promise<Worktree> => {
  const commit = input.git('rev-parse', 'HEAD')
  await borrowObjects(await openRepository(input.folder), join(place, 'borrowed.git'))
  const repository = join(place, 'own.git')
  await copyCommits({
    repository: join(place, 'borrowed.git'),
    folder: repository,
    commits: [commit, input.git('rev-parse', culprit)],
  })
  return addWorktree({ repository, path: join(place, 'work'), commit })
}
const text = (lines: readonly string[]): string => `${lines.join('\n')}\n`
const numbers = Array.from({ length: 30 }, (_, i) => `line ${i}`)
const changed = (...changes: [number, string][]): string =>
  text(numbers.map((line, i) => changes.find(([at]) => at === i)?.[1] ?? line))

/** A tester that judges the text of a.txt. */
const judge = (worktree: Worktree, commit: string, passes: (a: string) => boolean) => ({
  testers: async () => 1,
  run: async ({ patch }: { patch: Uint8Array }) => {
    await worktree.checkout(commit)
    if (!(await worktree.apply(patch))) return { verdict: 'skip', summary: 'does not apply' }
    return {
      verdict: passes(readFileSync(join(worktree.path, 'a.txt'), 'utf8')) ? 'pass' : 'fail',
      summary: '1/2 tests',
    }
  },
})

describe('the smallest repair', () => {
  beforeEach(begin)
  afterEach(end)

  it('is the one line of several that matters, although later commits moved it', async () => {
    input.commit('good', { 'a.txt': text(numbers), 'b.txt': '1\n' })
    const culprit = input.commit('culprit', {
      'a.txt': changed([3, 'x'], [4, 'y'], [5, 'broken'], [20, 'z']),
      'b.txt': '2\n',
    })
    const bad = input.commit('later', {
      'a.txt': `first\nsecond\n${changed([3, 'x'], [4, 'y'], [5, 'broken'], [20, 'z'], [29, 'end'])}`,
    })
    const worktree = await open(culprit)
    const before = digest(input.folder)
    const reversal = await reverseCommit(worktree, { culprit, bad, merge: false })
    expect(reversal.conflicts).toEqual([])
    const found = await reduceReversal({
      worktree,
      bad,
      reversal,
      client: judge(worktree, bad, (a) => !a.includes('broken')),
      signal: new AbortController().signal,
      maxTrials: 200,
    })
    // Taking the line out is smaller than putting the old one back.
    expect(found).toMatchObject({ lines: 1, files: ['a.txt'], minimal: true })
    expect(found.patch.toString()).toMatch(/^-broken$/m)
    expect(found.patch.toString()).not.toMatch(/^[-+](x|y|z|2)$/m)
    // With context, for people and for git apply without special options.
    expect(found.patch.toString()).toMatch(/^ line 6$/m)
    await worktree.checkout(bad)
    await worktree.git.run(['apply', '--check', '-'], { input: found.patch })
    // Git marks an object as used anew by the time of its file, unless the object is a copy.
    expect(digest(input.folder)).toBe(before)
  })

  it('comes from the part that can be taken back when later commits changed some of the same lines', async () => {
    input.commit('good', { 'a.txt': text(numbers) })
    const culprit = input.commit('culprit', { 'a.txt': changed([5, 'broken'], [20, 'other']) })
    const bad = input.commit('later', { 'a.txt': changed([5, 'broken'], [20, 'changed again']) })
    const worktree = await open(culprit)
    const reversal = await reverseCommit(worktree, { culprit, bad, merge: false })
    expect(reversal.conflicts).toEqual(['a.txt'])
    const found = await reduceReversal({
      worktree,
      bad,
      reversal,
      client: judge(worktree, bad, (a) => a.includes('line 5\n')),
      signal: new AbortController().signal,
      maxTrials: 200,
    })
    expect(found.patch.toString()).toMatch(/^\+line 5$/m)
    expect(found.patch.toString()).not.toContain('-changed again')
  })

  it('fails with a clear sentence when all of it was changed again', async () => {
    input.commit('good', { 'a.txt': text(numbers) })
    const culprit = input.commit('culprit', { 'a.txt': changed([5, 'broken']) })
    const bad = input.commit('later', { 'a.txt': changed([5, 'changed again']) })
    const worktree = await open(culprit)
    await expect(reverseCommit(worktree, { culprit, bad, merge: false })).rejects.toMatchObject({
      kind: 'NO_REPAIR',
      message: 'Later commits changed the same lines as the culprit in a.txt, so it cannot be taken back.',
    })
    expect(await worktree.git.text(['status', '--porcelain'])).toBe('')
  })

  it('fails with a clear sentence when taking all back does not help', async () => {
    input.commit('good', { 'a.txt': text(numbers) })
    const culprit = input.commit('culprit', { 'a.txt': changed([5, 'broken']) })
    const worktree = await open()
    const reversal = await reverseCommit(worktree, { culprit, bad: culprit, merge: false })
    const reduced = reduceReversal({
      worktree,
      bad: culprit,
      reversal,
      client: judge(worktree, culprit, () => false),
      signal: new AbortController().signal,
      maxTrials: 200,
    })
    await expect(reduced).rejects.toMatchObject({ kind: 'NO_REPAIR' })
  })

  it('takes back a merge, files made, removed and renamed', async () => {
    input.commit('good', { 'a.txt': text(numbers), 'gone.txt': 'needed\n', 'old name.txt': 'same\n' })
    input.git('checkout', '--quiet', '-b', 'side')
    input.commit('side', { 'gone.txt': null, 'new.txt': 'x\n', 'old name.txt': null, 'new name.txt': 'same\n' })
    input.git('checkout', '--quiet', 'main')
    input.commit('own', { 'c.txt': '1\n' })
    input.git('merge', '--quiet', '--no-ff', '-m', 'merge', 'side')
    const culprit = input.git('rev-parse', 'HEAD')
    const worktree = await open()
    const { files } = await reverseCommit(worktree, { culprit, bad: culprit, merge: true })
    expect(files.map(({ path, whole }) => [path, whole]).sort()).toEqual([
      ['gone.txt', true],
      ['new name.txt', true],
      ['new.txt', true],
      ['old name.txt', true],
    ])
  })

  it('keeps a file that one side removed and the other changed as it is', async () => {
    input.commit('good', { 'a.txt': text(numbers), 'b.txt': '1\n' })
    const culprit = input.commit('culprit', { 'a.txt': changed([5, 'broken']), 'b.txt': '2\n' })
    const bad = input.commit('later', { 'b.txt': null })
    const worktree = await open(culprit)
    const { files, conflicts } = await reverseCommit(worktree, { culprit, bad, merge: false })
    expect(conflicts).toEqual(['b.txt'])
    expect(files.map(({ path }) => path)).toEqual(['a.txt'])
  })
})

describe('a proposed patch', () => {
  // Each leaves the worktree clean, so that one does for all.
  let commit: string
  let worktree: Worktree
  beforeAll(async () => {
    begin()
    commit = input.commit('one', { 'a.txt': 'old\n', 'b.txt': 'old\n' })
    worktree = await open()
  })
  afterEach(async () => expect(await worktree.git.text(['status', '--porcelain'])).toBe(''))
  afterAll(end)

  const proposal = (from: string, to: string, path = 'a.txt'): string =>
    `--- a/${path}\n+++ b/${path}\n@@ -1,1 +1,9 @@\n-${from}\n+${to}\n`

  it('is taken although its counts are wrong, and written anew by git', async () => {
    const normal = await normalizeProposal(worktree, {
      commit,
      proposal: proposal('old', 'new'),
      allowed: new Set(['a.txt']),
    })
    expect(normal).toMatchObject({ files: ['a.txt'] })
    await worktree.git.run(['apply', '--check', '-'], { input: (normal as { patch: Buffer }).patch })
  })

  it.each([
    ['does not apply', proposal('other', 'new'), 'it does not apply'],
    [
      'changes another file',
      proposal('old', 'new', 'b.txt'),
      'it changes b.txt, which is a test or was not changed by the culprit',
    ],
    ['leaves the worktree', proposal('old', 'new', '../outside.txt'), 'it does not apply'],
    ['writes below .git', '--- /dev/null\n+++ b/.git/hooks/post-checkout\n@@ -0,0 +1 @@\n+x\n', 'it does not apply'],
  ])('is refused when it %s', async (_, patch, refused) => {
    expect(await normalizeProposal(worktree, { commit, proposal: patch, allowed: new Set(['a.txt']) })).toEqual({
      refused,
    })
  })

  it('may not weaken tests', () => {
    const tests = [
      'test/a.js',
      'src/__tests__/a.ts',
      'src/a.test.ts',
      'src/a.spec.js',
      'tests/a.py',
      'pkg/a_test.go',
      'test_a.py',
      'spec/a_spec.rb',
    ]
    expect(tests.filter((path) => !isTestFile(path))).toEqual([])
    expect(['src/latest.ts', 'src/contest/a.ts', 'src/testing-library.ts', 'protest.js'].filter(isTestFile)).toEqual([])
  })
})
