import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Failure, failure } from '../failures.ts'
import { printable } from '../process/printable.ts'
import { createGit, type Git } from './git.ts'

/** A repository that is only ever read. */
export interface Repository {
  readonly git: Git
  /** Top of the working tree; of a bare repository, the repository itself. */
  readonly root: string
  /** Where the given folder lies below `root`, '' at the top. Commands run there in each worktree. */
  readonly prefix: string
  readonly bare: boolean
}

export interface Commit {
  readonly sha: string
  readonly subject: string
}

/** Opens the repository that holds `folder`. Fails with `NO_GIT` and `NOT_A_REPOSITORY`. */
export async function openRepository(folder: string, env: NodeJS.ProcessEnv = process.env): Promise<Repository> {
  const info = await stat(folder).catch(() => undefined)
  if (!info?.isDirectory()) {
    throw failure(
      'NOT_A_REPOSITORY',
      `There is no folder ${folder}.`,
      'Give the folder of a git repository with --repo.',
    )
  }
  const git = createGit({ cwd: folder, env })
  const found = await git.try(['rev-parse', '--is-bare-repository', '--absolute-git-dir'])
  if (found.code !== 0) throw notARepository(folder, found.stderr)
  const [bare, gitDir] = found.stdout.toString('utf8').split('\n')
  if (bare === 'true') return { git, root: gitDir as string, prefix: '', bare: true }
  const top = await git.try(['rev-parse', '--show-toplevel'])
  if (top.code !== 0) throw notARepository(folder, top.stderr)
  return { git, root: resolve(line(top.stdout)), prefix: await git.text(['rev-parse', '--show-prefix']), bare: false }
}

/** The commit that a revision names. Fails with `UNKNOWN_REVISION`. */
export async function resolveCommit({ git, root }: Repository, revision: string, option: string): Promise<Commit> {
  // A revision cannot begin with a hyphen; git would read it as an option.
  const found = revision.startsWith('-')
    ? undefined
    : await git.try(['rev-parse', '--verify', '--quiet', `${revision}^{commit}`])
  if (found?.code !== 0) {
    throw failure(
      'UNKNOWN_REVISION',
      `${option} ${printable(revision, 80)} is no commit of ${root}.`,
      'Give a commit, tag or branch; `git log --oneline` lists commits. A shallow clone has only the newest: `git fetch --unshallow`.',
    )
  }
  const sha = line(found.stdout)
  return { sha, subject: await git.text(['log', '-1', '--format=%s', sha]) }
}

export interface Range {
  /** Shas after `good` up to and including `bad`, oldest first, along first parents. */
  readonly commits: readonly string[]
  /** Merge commits among them; what they merged is not looked into. */
  readonly merges: number
}

/** The commits between two revisions. Fails with `NOT_A_DESCENDANT`. */
export async function commitRange({ git }: Repository, good: Commit, bad: Commit): Promise<Range> {
  if (good.sha === bad.sha) {
    throw failure(
      'NOT_A_DESCENDANT',
      'The good and the bad revision are the same commit.',
      'Give an older --good, or another --bad.',
    )
  }
  if (!(await isAncestor(git, good.sha, bad.sha))) {
    const swapped = await isAncestor(git, bad.sha, good.sha)
    throw failure(
      'NOT_A_DESCENDANT',
      `The bad revision ${bad.sha.slice(0, 7)} does not descend from the good one ${good.sha.slice(0, 7)}.`,
      swapped
        ? 'It is older: swap --good and --bad.'
        : '`git merge-base <good> <bad>` names a commit that may serve as --good.',
    )
  }
  const range = `${good.sha}..${bad.sha}`
  const commits = (await git.text(['rev-list', '--first-parent', '--reverse', range])).split('\n')
  const merges = Number(await git.text(['rev-list', '--first-parent', '--merges', '--count', range]))
  return { commits, merges }
}

/** A parent of a commit, counted from 1; undefined where there is none. */
export async function parentOf(git: Git, sha: string, which = 1): Promise<string | undefined> {
  const found = await git.try(['rev-parse', '--verify', '--quiet', `${sha}^${which}`])
  return found.code === 0 ? line(found.stdout) : undefined
}

/** Whether the working tree differs from its commit, untracked files included; never refreshes the index. */
export async function hasUncommittedChanges({ git, bare }: Repository): Promise<boolean> {
  return !bare && (await git.run(['status', '--porcelain', '-z'])).length > 0
}

async function isAncestor(git: Git, older: string, newer: string): Promise<boolean> {
  return (await git.try(['merge-base', '--is-ancestor', older, newer])).code === 0
}

function notARepository(folder: string, said: string): Failure {
  const owner = said.includes('dubious ownership')
  return failure(
    'NOT_A_REPOSITORY',
    owner ? `git does not trust ${folder}: it belongs to another user.` : `${folder} is not in a git repository.`,
    owner
      ? `If you trust it: git config --global --add safe.directory ${folder}`
      : 'Give the folder of a git repository with --repo.',
  )
}

function line(output: Buffer): string {
  return output.toString('utf8').replace(/\r?\n$/, '')
}
