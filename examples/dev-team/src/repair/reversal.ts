import { failure } from '../failures.ts'
import type { Worktree } from '../git/worktree.ts'
import { type FileChange, parseChanges } from './change.ts'

export interface Reversal {
  /** What taking the culprit back changes in the bad revision. */
  readonly files: readonly FileChange[]
  /** Files in which later commits changed the same lines; there these lines stay as they are. */
  readonly conflicts: readonly string[]
}

/** Machine-readable whatever the user's settings: no colours, no external tools, the usual prefixes. */
export const PLAIN_DIFF = [
  'diff',
  '--cached',
  '--no-color',
  '--no-ext-diff',
  '--no-textconv',
  '--no-renames',
  '--binary',
  '--full-index',
  '--src-prefix=a/',
  '--dst-prefix=b/',
  '--submodule=short',
]

/**
 * Takes a commit back on top of another one by a three-way merge, in a worktree that is left clean at `bad` and whose
 * repository has objects of its own.
 * Fails with `NO_REPAIR` when nothing of it can be taken back.
 */
export async function reverseCommit(
  worktree: Worktree,
  { culprit, bad, merge }: { culprit: string; bad: string; merge: boolean },
): Promise<Reversal> {
  const { git } = worktree
  const revert = (...more: string[]) =>
    git.try(['revert', '--no-commit', ...(merge ? ['--mainline', '1'] : []), ...more, culprit])

  await worktree.checkout(bad)
  let conflicts: string[] = []
  if ((await revert()).code !== 0) {
    conflicts = await unmerged(worktree)
    await worktree.checkout(bad)
    // What clashes keeps its present form; the rest of the reversal may be all that is needed.
    await revert('--strategy-option=ours')
    // What is left, such as a file removed on one side and changed on the other, stays as it is at the bad revision too.
    const stuck = await unmerged(worktree)
    if (stuck.length > 0) await git.run(['rm', '--quiet', '--force', '--', ...stuck])
    const kept = stuck.length > 0 ? await presentAt(worktree, bad, stuck) : []
    if (kept.length > 0) await git.run(['checkout', '--quiet', bad, '--', ...kept])
  }
  const diff = await git.run([...PLAIN_DIFF, '--unified=0', bad])
  await worktree.checkout(bad)
  if (diff.length === 0) {
    throw failure(
      'NO_REPAIR',
      conflicts.length > 0
        ? `Later commits changed the same lines as the culprit in ${conflicts.join(', ')}, so it cannot be taken back.`
        : 'Taking the culprit back changes nothing at the bad revision any more.',
      'Look at the culprit with `git show`, and repair it by hand.',
    )
  }
  return { files: parseChanges(diff.toString('latin1')), conflicts }
}

/** The same patch with three lines of context, as people and `git apply` expect it. Leaves the worktree clean at `commit`. */
export async function withContext(
  worktree: Worktree,
  { commit, patch }: { commit: string; patch: Uint8Array },
): Promise<Buffer> {
  await worktree.checkout(commit)
  if (!(await worktree.apply(patch, { index: true }))) throw new Error('the patch does not apply to its own commit')
  const text = await worktree.git.run([...PLAIN_DIFF, '--unified=3', commit])
  await worktree.checkout(commit)
  return text
}

async function unmerged({ git }: Worktree): Promise<string[]> {
  const names = await git.run(['diff', '--name-only', '--diff-filter=U', '-z'])
  return names.toString('utf8').split('\0').filter(Boolean)
}

async function presentAt({ git }: Worktree, commit: string, paths: readonly string[]): Promise<string[]> {
  const names = await git.run(['ls-tree', '--name-only', '-z', commit, '--', ...paths])
  return names.toString('utf8').split('\0').filter(Boolean)
}
