import { mkdir } from 'node:fs/promises'
import { createGit } from '../git/git.ts'
import { CULPRIT } from './history/culprit.ts'
import { FIRST } from './history/first.ts'
import { FOURTH } from './history/fourth.ts'
import { SECOND } from './history/second.ts'
import { START } from './history/start.ts'
import { THIRD } from './history/third.ts'
import { applyStep, type Step } from './step.ts'

/** The history of the sample, oldest first: 64 commits. */
const HISTORY: readonly Step[] = [START, ...FIRST, CULPRIT, ...SECOND, ...THIRD, ...FOURTH]

export const SAMPLE_GOOD = 'v1.0'
export const SAMPLE_TEST = 'node test/cart.test.js'
export const SAMPLE_SUITE = 'node --test'

export interface Sample {
  readonly folder: string
  /** Shas, oldest first; the same on every machine. */
  readonly commits: readonly string[]
  readonly culprit: string
}

const AUTHORS = ['Ada Novak <ada@example.org>', 'Kofi Mensah <kofi@example.org>', '林 梅 <mei@example.org>']
/** 2024-03-04 09:00 UTC; commits follow every five hours. */
const FIRST_COMMIT_AT = 1_709_542_800

/** Writes the sample repository: a small JavaScript library, one commit of which breaks one test. */
export async function writeSample(folder: string): Promise<Sample> {
  await mkdir(folder, { recursive: true })
  // Settings of the user, as for line ends or the hash, would make other commits of it.
  const git = createGit({
    cwd: folder,
    env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
  })
  await git.run(['init', '--quiet', '--template=', '--initial-branch=main', '--object-format=sha1', '.'])
  await git.run(['fast-import', '--quiet', '--done'], { input: fastImport(HISTORY) })
  await git.run(['tag', SAMPLE_GOOD, `main~${HISTORY.length - 1}`])
  await git.run(['checkout', '--quiet', '--force', 'main'])
  const commits = (await git.text(['rev-list', '--reverse', 'main'])).split('\n')
  return { folder, commits, culprit: commits[HISTORY.indexOf(CULPRIT)] as string }
}

/** All commits in one stream: one git process instead of a hundred. */
function fastImport(history: readonly Step[]): string {
  const files = new Map<string, string>()
  const out: string[] = []
  history.forEach((step, i) => {
    const { changed, gone } = applyStep(files, step)
    const who = `${AUTHORS[i % AUTHORS.length]} ${FIRST_COMMIT_AT + i * 18_000} +0000`
    out.push('commit refs/heads/main\n', `author ${who}\n`, `committer ${who}\n`, data(step.subject))
    for (const path of gone) out.push(`D ${path}\n`)
    for (const path of changed) out.push(`M 100644 inline ${path}\n`, data(files.get(path) as string))
  })
  out.push('done\n')
  return out.join('')
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`
}
