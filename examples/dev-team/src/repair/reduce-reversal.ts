import { failure } from '../failures.ts'
import type { Worktree } from '../git/worktree.ts'
import { printable } from '../process/printable.ts'
import { allEdits, renderEdits } from './edits.ts'
import { reduceChange } from './reduce.ts'
import { type Reversal, withContext } from './reversal.ts'

/** The part of a test client that reducing needs. */
export interface Trials {
  run(work: { commit: string; patch: Uint8Array }, signal: AbortSignal): Promise<{ verdict: string; summary: string }>
  testers(): Promise<number>
}

export interface ReducedReversal {
  /** Both with lines of context, as `git apply` takes them. */
  readonly patch: Buffer
  readonly whole: Buffer
  /** Changed lines of `patch`, and the files it changes. */
  readonly lines: number
  readonly files: readonly string[]
  readonly trials: number
  readonly minimal: boolean
}

/** Finds the smallest part of a reversal that makes the test pass at `bad`. Fails with `NO_REPAIR` when the whole does not. */
export async function reduceReversal({
  worktree,
  bad,
  reversal,
  client,
  signal,
  maxTrials,
}: {
  worktree: Worktree
  bad: string
  reversal: Reversal
  client: Trials
  signal: AbortSignal
  maxTrials: number
}): Promise<ReducedReversal> {
  const { files, conflicts } = reversal
  const whole = renderEdits(files, allEdits(files))
  const bytes = (patch: string): Buffer => Buffer.from(patch, 'latin1')
  const first = await client.run({ commit: bad, patch: bytes(whole) }, signal)
  if (first.verdict !== 'pass') {
    throw failure(
      'NO_REPAIR',
      conflicts.length > 0
        ? `Later commits changed the same lines as the culprit in ${conflicts.map((path) => printable(path)).join(', ')}; what can be taken back does not make the test pass.`
        : `Taking the whole culprit back does not make the test pass at the bad revision: ${first.summary}`,
      'A later commit breaks the test as well, or builds on the culprit. Repair by hand, or search again with a --bad before it.',
    )
  }
  const reduced = await reduceChange({
    files,
    passes: async (patch, trial) => (await client.run({ commit: bad, patch: bytes(patch) }, trial)).verdict === 'pass',
    parallel: () => client.testers(),
    signal,
    maxTrials,
  })
  return {
    patch: await withContext(worktree, { commit: bad, patch: bytes(reduced.patch) }),
    whole: await withContext(worktree, { commit: bad, patch: bytes(whole) }),
    lines: reduced.lines,
    files: reduced.files.map((path) => printable(path)),
    trials: reduced.trials + 1,
    minimal: reduced.minimal,
  }
}
