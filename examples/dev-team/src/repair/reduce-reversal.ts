import { MAX_PATCH_BYTES } from '../contracts.ts'
import { failure } from '../failures.ts'
import type { Worktree } from '../git/worktree.ts'
import { printable } from '../process/printable.ts'
import { countLines } from './change.ts'
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
  /** Undefined when it is larger than a message takes. */
  readonly whole: Buffer | undefined
  /** Changed lines of `patch`, and the files it changes. */
  readonly lines: number
  readonly files: readonly string[]
  readonly trials: number
  readonly minimal: boolean
}

/** Share of the work when it is known that there is something to reduce. */
const WHOLE_PASSES = 0.1
/** When one line is left; between the two each halving counts the same, as it takes about as many trials. */
const SHOWN_SMALLEST = 0.9

/** Finds the smallest part of a reversal that makes the test pass at `bad`. Fails with `NO_REPAIR` when the whole does not. */
export async function reduceReversal({
  worktree,
  bad,
  reversal,
  client,
  signal,
  maxTrials,
  progress = () => {},
}: {
  worktree: Worktree
  bad: string
  reversal: Reversal
  client: Trials
  signal: AbortSignal
  maxTrials: number
  /** Told a share of this work, 0 to 1, that never falls, and a sentence. */
  progress?: (share: number, note: string) => void
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
  progress(WHOLE_PASSES, 'taking all of it back makes the test pass')
  const reduced = await reduceChange({
    files,
    passes: async (patch, trial) => (await client.run({ commit: bad, patch: bytes(patch) }, trial)).verdict === 'pass',
    parallel: () => client.testers(),
    signal,
    maxTrials,
    onSmaller: ({ lines, trials }) =>
      progress(
        WHOLE_PASSES + (1 - Math.log(lines) / Math.log(countLines(files))) * (SHOWN_SMALLEST - WHOLE_PASSES),
        `${lines === 1 ? '1 line is' : `${lines} lines are`} enough, after ${trials + 1} trials`,
      ),
  })
  const patch = await withContext(worktree, { commit: bad, patch: bytes(reduced.patch) })
  const wholeInContext = await withContext(worktree, { commit: bad, patch: bytes(whole) })
  if (patch.length > MAX_PATCH_BYTES) {
    throw failure(
      'NO_REPAIR',
      `After ${reduced.trials} trials the smallest repair is still ${patch.length} bytes.`,
      'Look at the culprit with `git show`.',
    )
  }
  return {
    patch,
    whole: wholeInContext.length > MAX_PATCH_BYTES ? undefined : wholeInContext,
    lines: reduced.lines,
    files: reduced.files.map((path) => printable(path)),
    trials: reduced.trials + 1,
    minimal: reduced.minimal,
  }
}
