import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { borrowObjects } from '../src/git/copy.ts'
import { installedDependencies, linkDependencies } from '../src/git/dependencies.ts'
import { createGit } from '../src/git/git.ts'
import { commitRange, hasUncommittedChanges, openRepository, resolveCommit } from '../src/git/repository.ts'
import { addWorktree } from '../src/git/worktree.ts'
import { createRepository, digest, type TestRepository } from './support/repository.ts'

let place: string
let input: TestRepository
beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), 'dev-team-test-')))
  input = createRepository(join(place, 'in put'))
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

const copyOf = async (): Promise<string> => {
  const copy = join(place, 'copy.git')
  await borrowObjects(await openRepository(input.folder), copy)
  return copy
}

describe('working on a copy', () => {
  it('leaves every byte and time of the input as it was', async () => {
    const good = input.commit('one', { 'a.txt': '1\n', 'sub/b.txt': '1\n' })
    const bad = input.commit('two', { 'a.txt': '2\n' })
    writeFileSync(join(input.folder, 'a.txt'), 'uncommitted\n')
    writeFileSync(join(input.folder, 'untracked.txt'), 'x\n')
    mkdirSync(join(input.folder, 'node_modules', 'dep'), { recursive: true })
    // A monitor of the file system would start a process that writes below .git.
    input.git('config', 'core.fsmonitor', 'true')
    const before = digest(input.folder)

    const repository = await openRepository(input.folder)
    await resolveCommit(repository, 'HEAD', '--bad')
    await commitRange(repository, { sha: good, subject: '' }, { sha: bad, subject: '' })
    expect(await hasUncommittedChanges(repository)).toBe(true)
    const folders = await installedDependencies(repository)
    const copy = await copyOf()
    const worktree = await addWorktree({ repository: copy, path: join(place, 'work'), commit: bad })
    await linkDependencies(input.folder, folders, worktree.path)
    writeFileSync(join(worktree.path, 'a.txt'), 'changed by a test\n')
    await worktree.checkout(good)
    expect(await worktree.apply(Buffer.from('--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+patched\n'))).toBe(true)
    // The patched file equals that of another commit: staging it would mark that object as used.
    await worktree.checkout(good)
    expect(await worktree.apply(Buffer.from('--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+2\n'))).toBe(true)
    rmSync(worktree.path, { recursive: true })

    expect(digest(input.folder)).toBe(before)
  })

  it('reaches commits that no branch holds, from a bare, a linked and a shallow repository too', async () => {
    input.commit('one', { 'a.txt': '1\n' })
    const loose = input.commit('two', { 'a.txt': '2\n' })
    input.git('reset', '--quiet', '--hard', 'HEAD~1')
    input.git('worktree', 'add', '--quiet', '--detach', join(place, 'linked'), loose)
    input.git('clone', '--quiet', '--bare', '.', join(place, 'bare.git'))
    input.git('clone', '--quiet', '--depth', '1', `file://${input.folder}`, join(place, 'shallow'))
    const cases = [
      [input.folder, loose],
      [join(place, 'linked'), 'HEAD'],
      [join(place, 'bare.git'), 'main'],
      [join(place, 'shallow'), 'HEAD'],
    ] as const
    for (const [i, [folder, revision]] of cases.entries()) {
      const repository = await openRepository(folder)
      const { sha } = await resolveCommit(repository, revision, '--bad')
      const copy = join(place, `copy-${i}.git`)
      await borrowObjects(repository, copy)
      const worktree = await addWorktree({ repository: copy, path: `${copy}-work`, commit: sha })
      expect(readFileSync(join(worktree.path, 'a.txt'), 'utf8')).toBe(sha === loose ? '2\n' : '1\n')
    }
  })

  it('works in a repository whose objects have SHA-256 names', async () => {
    const folder = join(place, 'sha256')
    mkdirSync(folder)
    const git = createGit({ cwd: folder })
    await git.run(['init', '--quiet', '--object-format=sha256', '.'])
    await git.run([
      '-c',
      'user.name=T',
      '-c',
      'user.email=t@example.org',
      'commit',
      '--quiet',
      '--allow-empty',
      '-m',
      'one',
    ])
    const repository = await openRepository(folder)
    const { sha } = await resolveCommit(repository, 'HEAD', '--bad')
    expect(sha).toHaveLength(64)
    await borrowObjects(repository, join(place, 'copy256.git'))
    await addWorktree({ repository: join(place, 'copy256.git'), path: join(place, 'work256'), commit: sha })
  })

  it('brings a worktree back from any state a test left it in, but keeps ignored files', async () => {
    const one = input.commit('one', { 'a.txt': '1\n', '.gitignore': 'build/\n' })
    const two = input.commit('two', { 'a.txt': '2\n', 'only-here.txt': 'x\n' })
    const worktree = await addWorktree({ repository: await copyOf(), path: join(place, 'work'), commit: two })
    mkdirSync(join(worktree.path, 'build'))
    writeFileSync(join(worktree.path, 'build', 'cache'), 'kept\n')
    mkdirSync(join(worktree.path, 'left', 'over'), { recursive: true })
    writeFileSync(join(worktree.path, 'left', 'over', 'file'), 'x\n')
    rmSync(join(worktree.path, 'a.txt'))
    await worktree.checkout(one)
    expect(readFileSync(join(worktree.path, 'a.txt'), 'utf8')).toBe('1\n')
    expect(existsSync(join(worktree.path, 'only-here.txt'))).toBe(false)
    expect(existsSync(join(worktree.path, 'left'))).toBe(false)
    expect(existsSync(join(worktree.path, 'build', 'cache'))).toBe(true)
  })

  it('takes away what a patch made, ignored files too', async () => {
    const one = input.commit('one', { '.gitignore': 'dist/\n' })
    const worktree = await addWorktree({ repository: await copyOf(), path: join(place, 'work'), commit: one })
    expect(await worktree.apply(Buffer.from('--- /dev/null\n+++ b/dist/made.js\n@@ -0,0 +1 @@\n+1\n'))).toBe(true)
    expect(existsSync(join(worktree.path, 'dist', 'made.js'))).toBe(true)
    await worktree.checkout(one)
    expect(existsSync(join(worktree.path, 'dist', 'made.js'))).toBe(false)
  })

  it('says when a patch does not apply, and changes nothing then', async () => {
    const one = input.commit('one', { 'a.txt': '1\n' })
    const worktree = await addWorktree({ repository: await copyOf(), path: join(place, 'work'), commit: one })
    expect(await worktree.apply(Buffer.from('--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-9\n+3\n'))).toBe(false)
    expect(await worktree.apply(Buffer.from('--- a/x\n+++ b/../../escape\n@@ -0,0 +1 @@\n+3\n'))).toBe(false)
    expect(readFileSync(join(worktree.path, 'a.txt'), 'utf8')).toBe('1\n')
  })

  it('follows first parents and counts merges', async () => {
    const good = input.commit('good', { 'a.txt': '1\n' })
    input.git('checkout', '--quiet', '-b', 'side')
    const side = input.commit('side', { 'b.txt': '1\n' })
    input.git('checkout', '--quiet', 'main')
    const own = input.commit('own', { 'c.txt': '1\n' })
    input.git('merge', '--quiet', '--no-ff', '-m', 'merge', 'side')
    const bad = input.git('rev-parse', 'HEAD')
    const range = await commitRange(
      await openRepository(input.folder),
      { sha: good, subject: '' },
      { sha: bad, subject: '' },
    )
    expect(range).toEqual({ commits: [own, bad], merges: 1 })
    expect(range.commits).not.toContain(side)
  })

  it('knows the folder inside the repository that was given', async () => {
    input.commit('one', { 'packages/a/x.txt': '1\n' })
    const repository = await openRepository(join(input.folder, 'packages', 'a'))
    expect(repository).toMatchObject({ root: input.folder, prefix: 'packages/a/' })
  })
})

describe('linking installed dependencies', () => {
  it('links each package, keeps caches out, and leads packages of a workspace to the worktree', async () => {
    const one = input.commit('one', {
      'package.json': '{}',
      'packages/own/index.js': '1\n',
      '.gitignore': 'node_modules\n',
    })
    const modules = join(input.folder, 'node_modules')
    for (const path of ['plain', '@scope/scoped', '.bin', '.cache', '.vite'])
      mkdirSync(join(modules, path), { recursive: true })
    writeFileSync(join(modules, 'plain', 'index.js'), 'plain\n')
    writeFileSync(join(modules, '@scope', 'scoped', 'index.js'), 'scoped\n')
    symlinkSync('../packages/own', join(modules, 'own'))
    mkdirSync(join(input.folder, 'packages', 'own', 'node_modules', 'nested'), { recursive: true })

    const repository = await openRepository(input.folder)
    const folders = await installedDependencies(repository)
    expect(folders.sort()).toEqual(['node_modules', 'packages/own/node_modules'])
    const worktree = await addWorktree({ repository: await copyOf(), path: join(place, 'work'), commit: one })
    await linkDependencies(repository.root, folders, worktree.path)

    const inside = (...path: string[]): string => join(worktree.path, 'node_modules', ...path)
    expect(lstatSync(inside()).isSymbolicLink()).toBe(false)
    expect(readFileSync(inside('plain', 'index.js'), 'utf8')).toBe('plain\n')
    expect(readFileSync(inside('@scope', 'scoped', 'index.js'), 'utf8')).toBe('scoped\n')
    expect(readlinkSync(inside('.bin'))).toBe(join(modules, '.bin'))
    expect(existsSync(inside('.cache'))).toBe(false)
    expect(realpathSync(inside('own'))).toBe(join(worktree.path, 'packages', 'own'))
    expect(existsSync(join(worktree.path, 'packages', 'own', 'node_modules', 'nested'))).toBe(true)
    expect(await worktree.git.text(['status', '--porcelain'])).toBe('')
    await worktree.checkout(one)
    expect(existsSync(inside('plain', 'index.js'))).toBe(true)
  })

  it('links nothing that is tracked', async () => {
    input.commit('one', { 'node_modules/dep/index.js': '1\n' })
    expect(await installedDependencies(await openRepository(input.folder))).toEqual([])
  })
})
