import type { Worktree } from '../git/worktree.ts'
import { printable } from '../process/printable.ts'
import { isTestFile, normalizeProposal } from '../repair/accept-proposal.ts'
import { askForPatch, type ModelEndpoint } from '../repair/proposal.ts'
import type { Reversal } from '../repair/reversal.ts'
import type { TestClient } from './test-client.ts'

export interface Proposed {
  /** Undefined when there is none that the testers and the reviewer accept. */
  readonly patch: Buffer | undefined
  readonly note: string
}

/**
 * Has a model propose a repair. It counts only when it stays within the files of the culprit that are no tests, the test
 * passes with it, and the reviewer accepts it. A model that fails never fails the repair.
 */
export async function proposeByModel({
  endpoint,
  worktree,
  culprit,
  bad,
  reversal,
  client,
  accept,
  signal,
}: {
  endpoint: ModelEndpoint
  worktree: Worktree
  culprit: string
  bad: string
  reversal: Reversal
  client: Pick<TestClient, 'run'>
  accept: (patch: Buffer) => Promise<boolean>
  signal: AbortSignal
}): Promise<Proposed> {
  const refused = (note: string): Proposed => ({ patch: undefined, note: printable(note, 300) })
  try {
    const failing = await client.run({ commit: bad, excerpt: true }, signal)
    const paths = reversal.files.map(({ path }) => path).filter((path) => !isTestFile(path))
    const proposal = await askForPatch(
      endpoint,
      {
        culprit: (await worktree.git.run(['show', '--no-color', '--no-ext-diff', '--format=%B', culprit])).toString(
          'utf8',
        ),
        failing: failing.excerpt,
        files: await presentText(worktree, bad, paths),
      },
      signal,
    )
    if (proposal === undefined) return refused('its answer holds no patch')
    const normal = await normalizeProposal(worktree, { commit: bad, proposal, allowed: new Set(paths) })
    if ('refused' in normal) return refused(normal.refused)
    const tested = await client.run({ commit: bad, patch: normal.patch }, signal)
    if (tested.verdict !== 'pass') return refused(`the test fails with it: ${tested.summary}`)
    if (!(await accept(normal.patch))) return refused('the reviewer refuses it')
    return { patch: normal.patch, note: 'accepted by testers and reviewer' }
  } catch (error) {
    signal.throwIfAborted()
    return refused((error as Error).message)
  }
}

async function presentText(
  { git }: Worktree,
  commit: string,
  paths: readonly string[],
): Promise<{ path: string; text: string }[]> {
  const files = await Promise.all(
    paths.slice(0, 20).map(async (path) => ({ path, found: await git.try(['cat-file', 'blob', `${commit}:${path}`]) })),
  )
  return files
    .filter(({ found }) => found.code === 0)
    .map(({ path, found }) => ({ path, text: found.stdout.toString('utf8') }))
}
