import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createJudge, isNotTested } from '../src/agents/judge.ts'
import type { TestClient, TestRun } from '../src/agents/test-client.ts'
import type { FailureKind } from '../src/failures.ts'
import { createGit } from '../src/git/git.ts'
import { findCulprit } from '../src/job/find-culprit.ts'
import { openNotes } from '../src/job/notes.ts'
import { createRepository } from './support/repository.ts'

let folder: string
let good: string
let between: string
let bad: string
let made = 0
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dev-team-test-'))
  const input = createRepository(join(folder, 'input'))
  good = input.commit('good', { 'state.txt': 'good\n' })
  between = input.commit('between', { 'below/other.txt': '1\n' })
  bad = input.commit('bad', { 'state.txt': 'bad\n' })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The search with real runs of a command, by one tester without a process of its own. */
async function search(test: string, more: { setup?: string; prefix?: string } = {}): Promise<string> {
  const own = join(folder, String(made++))
  const bench = {
    repository: join(folder, 'input'),
    folder: join(own, 'bench'),
    prefix: more.prefix ?? '',
    limitMs: 20_000,
    dependencies: { root: folder, folders: [] },
    ...(more.setup === undefined ? {} : { setup: more.setup }),
  }
  const judge = createJudge({ bench, test }, () => {})
  const run: TestClient['run'] = async ({ commit }, signal = new AbortController().signal): Promise<TestRun> => {
    try {
      const { passed, durationMs, summary } = await judge({ commit }, signal)
      return { verdict: passed ? 'pass' : 'fail', durationMs, summary, excerpt: '' }
    } catch (error) {
      if (!isNotTested(error)) throw error
      return { verdict: 'skip', reason: error.reason, summary: error.detail, durationMs: 0, excerpt: '' }
    }
  }
  const notes = openNotes(join(own, 'notes.jsonl'))
  try {
    return await findCulprit({
      git: createGit({ cwd: join(folder, 'input') }),
      good,
      bad,
      commits: [between, bad],
      client: { run, watch: (commit, signal) => run({ commit }, signal), testers: async () => 1 },
      notes,
      report: () => {},
      signal: new AbortController().signal,
    })
  } finally {
    notes.close()
  }
}

describe('what real runs of a test command come to', () => {
  it('is the culprit where it can be found', async () => {
    expect(await search('grep good state.txt')).toBe(bad)
  })

  const wrong: [string, FailureKind, () => Promise<string>, RegExp, RegExp][] = [
    [
      'a good revision that fails',
      'GOOD_FAILS',
      () => search('echo no luck; false'),
      /^The good revision .{7} fails as well: no luck$/,
      /older --good/,
    ],
    [
      'a bad revision that passes',
      'BAD_PASSES',
      () => search('true'),
      /^The bad revision .{7} does not fail/,
      /Nothing is broken/,
    ],
    [
      'a flaky test',
      'FLAKY',
      () => search(`grep -q good state.txt || mkdir '${join(folder, 'first')}'`),
      /flaky: .{7} failed in one run and passed in another/,
      /Narrow --test/,
    ],
    [
      'a test command that does not exist',
      'TEST_NOT_FOUND',
      () => search('no-such-command'),
      /could not be run at .{7}: .*no-such-command.*not found/,
      /typing errors/,
    ],
    [
      'a test that says it cannot test',
      'TEST_NOT_FOUND',
      () => search('exit 125'),
      /says at .{7} that it cannot test \(exit code 125\)/,
      /can be tested/,
    ],
    [
      'a setup that fails',
      'TEST_NOT_FOUND',
      () => search('true', { setup: 'echo no network; exit 3' }),
      /--setup command failed at .{7}: no network/,
      /fresh checkout/,
    ],
    [
      'a folder that is not there yet at the good revision',
      'TEST_NOT_FOUND',
      () => search('true', { prefix: 'below/' }),
      /folder given with --repo does not exist at .{7}/,
      /later --good/,
    ],
    [
      'a culprit among commits that cannot be tested',
      'NO_REPAIR',
      () => search('grep -q good state.txt && test -e below/other.txt && exit 125; grep good state.txt'),
      /^The culprit is one of 2 commits/,
      /--setup/,
    ],
  ]
  it.each(wrong)('is told in a sentence with a hint: %s', async (_, kind, run, message, hint) => {
    const error = await run().then(
      (culprit) => ({ culprit }),
      (thrown: unknown) => thrown,
    )
    expect(error).toMatchObject({ kind, message: expect.stringMatching(message), hint: expect.stringMatching(hint) })
    expect(existsSync(join(folder, 'input', '.git', 'worktrees'))).toBe(false)
  })
})
