import { MAX_PATCH_BYTES } from '../contracts.ts'
import { failure } from '../failures.ts'
import { parentOf } from '../git/repository.ts'
import type { Worktree } from '../git/worktree.ts'
import { allEdits, renderEdits } from './edits.ts'
import { type Reversal, reverseCommit } from './reversal.ts'

/** What would be taken back. Fails with `NO_REPAIR` when that is nothing, or too much. */
export async function planReversal(
  worktree: Worktree,
  { culprit, bad }: { culprit: string; bad: string },
): Promise<Reversal> {
  const merge = (await parentOf(worktree.git, culprit, 2)) !== undefined
  const reversal = await reverseCommit(worktree, { culprit, bad, merge })
  if (renderEdits(reversal.files, allEdits(reversal.files)).length > MAX_PATCH_BYTES) {
    throw failure('NO_REPAIR', 'The culprit changes too much to be reduced.', 'Look at it with `git show`.')
  }
  return reversal
}
