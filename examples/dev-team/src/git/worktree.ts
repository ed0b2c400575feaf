import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createGit, type Git } from './git.ts'

/** A folder of its own with the files of one commit, and perhaps a patch on top. One user at a time. */
export interface Worktree {
  readonly path: string
  readonly git: Git
  /** Brings every file to its state in `commit`; ignored files stay, as a build folder does in daily work. */
  checkout(commit: string): Promise<void>
  /**
   * Applies a git patch to the files, and with `index` to the index too, which writes objects. False when it does not
   * apply; nothing is changed then.
   */
  apply(patch: Uint8Array, options?: { index?: boolean }): Promise<boolean>
}

/**
 * Adds a worktree of the bare repository in `repository` at `path`. One at a time for one repository: two commands that add
 * at the same moment read each other's unfinished files, and fail.
 */
export async function addWorktree({
  repository,
  path,
  commit,
}: {
  repository: string
  path: string
  commit: string
}): Promise<Worktree> {
  await createGit({ cwd: repository }).run(['worktree', 'add', '--quiet', '--force', '--detach', path, commit])
  const git = createGit({ cwd: path })
  // Of the last patch only.
  let patched: string[] = []
  return {
    path,
    git,
    async checkout(target) {
      // A file that the patch made may be an ignored one, which no cleaning takes away.
      await Promise.all(patched.map((file) => rm(join(path, file), { force: true, recursive: true })))
      patched = []
      await git.run(['checkout', '--quiet', '--force', '--detach', target])
      // -ff: also what was a submodule or a nested repository in another commit. Linked dependencies are no file of a commit.
      await git.run(['clean', '--quiet', '-ffd', '--exclude=node_modules'])
    },
    async apply(patch, { index = false } = {}) {
      const options = [
        '--numstat',
        '-z',
        '--apply',
        '--unidiff-zero',
        '--whitespace=nowarn',
        ...(index ? ['--index'] : []),
      ]
      const { code, stdout } = await git.try(['apply', ...options, '-'], { input: patch })
      if (code !== 0) return false
      patched = pathsOf(stdout.toString('utf8'))
      return true
    },
  }
}

/** `added TAB removed TAB path NUL` each; no patch here renames. */
function pathsOf(numstat: string): string[] {
  return numstat
    .split('\0')
    .map((entry) => entry.split('\t').slice(2).join('\t'))
    .filter(Boolean)
}
