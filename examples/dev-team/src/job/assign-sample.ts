import { mkdir, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { borrowObjects } from '../git/copy.ts'
import { installedDependencies } from '../git/dependencies.ts'
import { openRepository } from '../git/repository.ts'
import { SAMPLE_SUITE, SAMPLE_TEST, type Sample, writeSample } from '../sample/write.ts'
import type { Assignment } from '../team/assignment.ts'

/** Longest run of a command in the sample, ms; it takes a fraction of a second. */
const SAMPLE_LIMIT_MS = 20_000

/** Writes the sample into the workspace and makes it the work to do. */
export async function assignSample(folder: string): Promise<{ assignment: Assignment; sample: Sample }> {
  const sample = await writeSample(join(folder, 'sample'))
  await installTypeChecker(sample.folder)
  const repository = await openRepository(sample.folder)
  const copy = join(folder, 'repository.git')
  await borrowObjects(repository, copy)
  const [good, ...commits] = sample.commits
  const assignment: Assignment = {
    repository: copy,
    good: good as string,
    bad: commits.at(-1) as string,
    commits,
    prefix: '',
    test: SAMPLE_TEST,
    suite: SAMPLE_SUITE,
    setup: undefined,
    dependencies: { root: repository.root, folders: await installedDependencies(repository) },
    limitMs: SAMPLE_LIMIT_MS,
    notes: [],
  }
  return { assignment, sample }
}

/** Links the type checker of this checkout, where there is one, as if the sample had it installed. */
async function installTypeChecker(folder: string): Promise<void> {
  let found: string
  try {
    found = dirname(createRequire(import.meta.url).resolve('typescript/package.json'))
  } catch {
    return
  }
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, '.bin'), { recursive: true })
  await symlink(found, join(modules, 'typescript'))
  await symlink(join('..', 'typescript', 'bin', 'tsc'), join(modules, '.bin', 'tsc'))
}
