import type { Worktree } from '../git/worktree.ts'
import { PLAIN_DIFF } from './reversal.ts'

export type NormalProposal =
  | { readonly patch: Buffer; readonly files: readonly string[] }
  | { readonly refused: string }

/** Files that decide whether a repair is one; a proposal that changes them could pass by weakening the test. */
const TEST_FILE = /(^|\/)(tests?|__tests__|specs?|e2e)\/|[._-](test|spec)s?\.[^/]+$|(^|\/)test_[^/]+$/i

export function isTestFile(path: string): boolean {
  return TEST_FILE.test(path)
}

/**
 * Writes a proposed patch anew as git sees its effect, when it applies and stays within the allowed files. Models miscount
 * lines and drop prefixes; both are forgiven. Leaves the worktree clean at `commit`.
 */
export async function normalizeProposal(
  { git, checkout }: Worktree,
  { commit, proposal, allowed }: { commit: string; proposal: string; allowed: ReadonlySet<string> },
): Promise<NormalProposal> {
  await checkout(commit)
  let applied = false
  for (const prefix of ['-p1', '-p0']) {
    if (applied) break
    applied =
      (await git.try(['apply', '--index', '--recount', '--whitespace=nowarn', prefix, '-'], { input: proposal }))
        .code === 0
  }
  if (!applied) return { refused: 'it does not apply' }
  const names = await git.run(['diff', '--cached', '--name-only', '--no-renames', '-z', commit])
  const patch = await git.run([...PLAIN_DIFF, '--unified=3', commit])
  await checkout(commit)
  const files = names.toString('utf8').split('\0').filter(Boolean)
  const foreign = files.find((file) => !allowed.has(file))
  if (foreign !== undefined)
    return { refused: `it changes ${foreign}, which is a test or was not changed by the culprit` }
  return files.length === 0 ? { refused: 'it changes nothing' } : { patch, files }
}
