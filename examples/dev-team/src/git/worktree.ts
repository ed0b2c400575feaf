import { createGit, type Git } from './git.ts'

/** A folder of its own with the files of one commit, and perhaps a patch on top. One user at a time. */
export interface Worktree {
  readonly path: string
  readonly git: Git
  /** Brings every file to its state in `commit`; ignored files stay, as a build folder does in daily work. */
  checkout(commit: string): Promise<void>
  /** Applies a git patch to files and index. False when it does not apply; nothing is changed then. */
  apply(patch: Uint8Array): Promise<boolean>
}

/** Adds a worktree of the bare repository in `repository` at `path`. */
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
  return {
    path,
    git,
    async checkout(target) {
      await git.run(['checkout', '--quiet', '--force', '--detach', target])
      // -ff: also what was a submodule or a nested repository in another commit. Linked dependencies are no file of a commit.
      await git.run(['clean', '--quiet', '-ffd', '--exclude=node_modules'])
    },
    async apply(patch) {
      const result = await git.try(['apply', '--index', '--unidiff-zero', '--whitespace=nowarn', '-'], { input: patch })
      return result.code === 0
    },
  }
}
