import { mkdir } from 'node:fs/promises'
import { createGit } from './git.ts'

/**
 * Makes a bare repository in `folder` with objects of its own: of some commits and their parents, nothing older. Merging and
 * staging need it: where objects are only borrowed, git marks those of the lender as used anew, which changes their files' time.
 */
export async function copyCommits({
  repository,
  folder,
  commits,
}: {
  repository: string
  folder: string
  commits: readonly string[]
}): Promise<void> {
  const format = await createGit({ cwd: repository }).text(['rev-parse', '--show-object-format'])
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const git = createGit({ cwd: folder })
  await git.run(['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, '.'])
  // Settings under which one's own local commits could be refused.
  const settings = [
    'protocol.version=2',
    'protocol.file.allow=always',
    'transfer.fsckObjects=false',
    'fetch.fsckObjects=false',
  ]
  const fetch = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--update-shallow', '--depth=2']
  await git.run([...settings.flatMap((setting) => ['-c', setting]), ...fetch, repository, ...new Set(commits)])
}
