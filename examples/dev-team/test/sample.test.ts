import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowObjects } from '../src/git/copy.ts'
import { openRepository } from '../src/git/repository.ts'
import { addWorktree, type Worktree } from '../src/git/worktree.ts'
import { runCommand } from '../src/process/command.ts'
import { countTests } from '../src/process/summary.ts'
import { SAMPLE_GOOD, SAMPLE_SUITE, SAMPLE_TEST, type Sample, writeSample } from '../src/sample/write.ts'

const execute = promisify(execFile)
let folder: string
let sample: Sample
const git = async (...args: string[]) => (await execute('git', args, { cwd: sample.folder })).stdout.trim()

const worktreeOf = (name: string): Promise<Worktree> =>
  addWorktree({ repository: join(folder, 'copy.git'), path: join(folder, name), commit: sample.commits[0] as string })

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dev-team-test-'))
  sample = await writeSample(join(folder, 'sample'))
  await borrowObjects(await openRepository(sample.folder), join(folder, 'copy.git'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the sample repository', () => {
  it('has 64 commits with different subjects, the first tagged good, and a clean working tree', async () => {
    expect(sample.commits).toHaveLength(64)
    expect(await git('rev-list', '--count', 'HEAD')).toBe('64')
    expect(await git('rev-parse', `${SAMPLE_GOOD}^{commit}`)).toBe(sample.commits[0])
    expect(await git('status', '--porcelain')).toBe('')
    const subjects = (await git('log', '--format=%s')).split('\n')
    expect(new Set(subjects).size).toBe(64)
  })

  it('has the same commits each time', async () => {
    const again = await writeSample(join(folder, 'again'))
    expect(again.commits).toEqual(sample.commits)
  })

  it('renames, documents, adds and tests among its commits', async () => {
    const summary = await git('log', '--summary', '--find-renames', '--format=')
    expect(summary).toMatch(/rename src\/\{?format.js/)
    expect(summary.match(/create mode/g)?.length).toBeGreaterThan(10)
  })

  it('has a culprit of several hunks in several files, of which one line is the fault', async () => {
    const diff = await git('show', '--unified=0', '--format=', sample.culprit)
    expect(diff.match(/^diff --git/gm)).toHaveLength(3)
    expect(diff.match(/^@@/gm)?.length).toBeGreaterThanOrEqual(6)
    expect(diff.match(/^\+(?!\+\+)/gm)?.length).toBeGreaterThanOrEqual(12)
    expect(diff).toContain('-  return quantity >= from')
  })

  it('passes its test up to the culprit and fails that one test from there on', { timeout: 60_000 }, async () => {
    const place = sample.commits.indexOf(sample.culprit)
    const chosen = [0, 9, place - 1, place, place + 1, 33, 47, 63]
    const check = async (worker: number): Promise<void> => {
      const { path, checkout } = await worktreeOf(`work-${worker}`)
      for (const i of chosen.filter((_, turn) => turn % 2 === worker)) {
        await checkout(sample.commits[i] as string)
        const { code, output } = await runCommand({
          command: SAMPLE_TEST,
          cwd: path,
          env: process.env,
          limitMs: 20_000,
        })
        expect({ i, code }).toEqual({ i, code: i < place ? 0 : 1 })
        if (i >= place)
          expect(output.match(/^not ok .*$/gm)).toEqual(['not ok 3 - the bulk price begins at the tenth piece'])
      }
    }
    await Promise.all([check(0), check(1)])
  })

  it('changes its bulk price at the culprit, at no other of the 64 commits', { timeout: 60_000 }, async () => {
    const place = sample.commits.indexOf(sample.culprit)
    const { path, checkout } = await worktreeOf('work-all')
    for (const [i, commit] of sample.commits.entries()) {
      await checkout(commit)
      const code = join(folder, 'code', String(i))
      cpSync(join(path, 'src'), join(code, 'src'), { recursive: true })
      cpSync(join(path, 'package.json'), join(code, 'package.json'))
    }
    // One process for all of them.
    const script = `for (const i of Array(64).keys()) {
      const { add, createCart, subtotal } = await import(process.argv[1] + '/' + i + '/src/index.js')
      const cart = createCart()
      add(cart, 'pen', 100, 10)
      console.log(subtotal(cart))
    }`
    const { stdout } = await execute(process.execPath, [
      '--input-type=module',
      '--eval',
      script,
      pathToFileURL(join(folder, 'code')).href,
    ])
    expect(stdout.trim().split('\n').map(Number)).toEqual(sample.commits.map((_, i) => (i < place ? 900 : 1000)))
  })

  it('has a suite in which nothing but that test fails at the newest commit', { timeout: 30_000 }, async () => {
    const { code, output } = await runCommand({
      command: SAMPLE_SUITE,
      cwd: sample.folder,
      env: process.env,
      limitMs: 20_000,
    })
    const count = countTests(output)
    expect(code).toBe(1)
    expect(count?.total).toBeGreaterThanOrEqual(20)
    expect(count?.passed).toBe((count?.total ?? 0) - 1)
  })
})
