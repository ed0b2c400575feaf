import { join } from 'node:path'
import type { OwnInput } from '../cli/options.ts'
import { borrowObjects } from '../git/copy.ts'
import { installedDependencies } from '../git/dependencies.ts'
import {
  commitRange,
  hasUncommittedChanges,
  openRepository,
  type Repository,
  resolveCommit,
} from '../git/repository.ts'
import type { Assignment } from '../team/assignment.ts'

/** Checks a repository of the user's and makes it the work to do. Fails with the kinds of `git/repository.ts`. */
export async function assignOwn(folder: string, input: OwnInput): Promise<Assignment> {
  const repository = await openRepository(input.repo)
  const good = await resolveCommit(repository, input.good, '--good')
  const bad = await resolveCommit(repository, input.bad, '--bad')
  const { commits, merges } = await commitRange(repository, good, bad)
  const notes: string[] = []
  if (await hasUncommittedChanges(repository)) notes.push('Uncommitted changes are ignored: only commits are tested.')
  if (merges > 0) {
    notes.push(
      `${merges === 1 ? '1 merge commit' : `${merges} merge commits`} in the range: first parents are followed, a merge counts as one change.`,
    )
  }
  const { git } = repository
  if ((await git.try(['cat-file', '-e', `${bad.sha}:.gitmodules`])).code === 0) {
    notes.push('Submodules are not checked out; --setup can do that.')
  }
  const copy = join(folder, 'repository.git')
  await borrowObjects(repository, copy)
  return {
    repository: copy,
    good: good.sha,
    bad: bad.sha,
    commits,
    prefix: repository.prefix,
    test: input.test,
    suite: input.suite ?? ((await hasNpmTest(repository, bad.sha)) ? 'npm test' : input.test),
    setup: input.setup,
    dependencies: {
      root: repository.root,
      folders: input.setup === undefined ? await installedDependencies(repository) : [],
    },
    limitMs: input.timeoutMs,
    notes,
  }
}

/** Whether the package at the given folder has a test script other than the one that `npm init` writes. */
async function hasNpmTest({ git, prefix }: Repository, commit: string): Promise<boolean> {
  const { code, stdout } = await git.try(['cat-file', 'blob', `${commit}:${prefix}package.json`])
  if (code !== 0) return false
  try {
    const script: unknown = JSON.parse(stdout.toString('utf8'))?.scripts?.test
    return typeof script === 'string' && !script.includes('no test specified')
  } catch {
    return false
  }
}
