import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createGit, type Git } from './git.ts'
import type { Repository } from './repository.ts'

/**
 * Makes an empty bare repository in `folder` that borrows all objects of another one. Worktrees, indexes and refs then go
 * here: `git worktree add` on the repository itself would write below its `.git`.
 */
export async function borrowObjects({ git }: Repository, folder: string): Promise<Git> {
  const format = await git.text(['rev-parse', '--show-object-format'])
  const place = ['rev-parse', '--path-format=absolute', '--git-path']
  const objects = await git.text([...place, 'objects'])
  const shallow = await git.text([...place, 'shallow'])
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // An empty template: no sample hooks, and none of the user's own.
  const copy = createGit({ cwd: folder })
  await copy.run(['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, '.'])
  const info = join(folder, 'objects', 'info')
  await mkdir(info, { recursive: true })
  // One path a line; a quoted one is read like a string of C.
  await writeFile(join(info, 'alternates'), `${objects.includes('\n') ? JSON.stringify(objects) : objects}\n`)
  await copyFile(shallow, join(folder, 'shallow')).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  await mkdir(join(folder, 'info'), { recursive: true })
  await writeFile(join(folder, 'info', 'exclude'), 'node_modules\n')
  return copy
}
