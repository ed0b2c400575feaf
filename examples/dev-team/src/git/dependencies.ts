import { mkdir, readdir, realpath, rm, stat, symlink } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import type { Repository } from './repository.ts'

/** Most dependency folders linked: one a workspace package of a large monorepo. */
const MAX_FOLDERS = 500

/** Installed, untracked `node_modules` folders of a working tree, relative to its top. */
export async function installedDependencies({ git, root, bare }: Repository): Promise<string[]> {
  if (bare) return []
  // Without any exclude file this lists ignored folders as well; --directory keeps it from walking into them.
  const untracked = await git.run(['-C', root, 'ls-files', '--others', '--directory', '-z'])
  return untracked
    .toString('utf8')
    .split('\0')
    .map((entry) => entry.replace(/\/$/, ''))
    .filter((entry) => entry === 'node_modules' || entry.endsWith('/node_modules'))
    .slice(0, MAX_FOLDERS)
}

/**
 * Gives a worktree the dependencies installed in the repository: a `node_modules` of its own with one link for each entry.
 * A link to the folder as a whole would send caches, and an install, into the user's repository, and would lead packages of
 * a workspace to the user's working tree instead of the commit at hand; those are linked inside the worktree.
 */
export async function linkDependencies(root: string, folders: readonly string[], worktree: string): Promise<void> {
  const top = await realpath(root)
  for (const folder of folders) await mirror(join(root, folder), join(worktree, folder), { top, worktree })
}

async function mirror(from: string, to: string, place: { top: string; worktree: string }): Promise<void> {
  if (!(await stat(from)).isDirectory()) return
  await mkdir(to, { recursive: true })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(to, entry.name)
    if (entry.isDirectory() && entry.name.startsWith('@')) await mirror(source, target, place)
    else if (!entry.name.startsWith('.') || entry.name === '.bin' || entry.name === '.pnpm') {
      await rm(target, { force: true, recursive: true })
      await symlink(await destination(source, entry.isSymbolicLink(), target, place), target)
    }
  }
}

async function destination(
  source: string,
  isLink: boolean,
  target: string,
  { top, worktree }: { top: string; worktree: string },
): Promise<string> {
  if (!isLink) return source
  const real = await realpath(source).catch(() => source)
  const inside = real.startsWith(top + sep) ? relative(top, real) : undefined
  const own = inside !== undefined && !inside.split(sep).includes('node_modules')
  return own ? relative(dirname(target), join(worktree, inside)) : source
}
