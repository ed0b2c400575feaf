import type { FileChange } from './change.ts'
import { ddmin } from './ddmin.ts'
import { allEdits, type Edit, editLevels, measureEdits, renderEdits } from './edits.ts'

export interface ReduceChangeOptions {
  files: readonly FileChange[]
  /** Whether the test passes with this patch (latin1) on the bad revision. The whole change is known to. */
  passes: (patch: string, signal: AbortSignal) => Promise<boolean>
  parallel: () => number | Promise<number>
  signal?: AbortSignal
  /** Most trials; the smallest patch found by then is the answer, marked as not proven smallest. */
  maxTrials: number
  /** Told each time fewer lines than before are known to be enough. */
  onSmaller?: (found: { lines: number; trials: number }) => void
}

export interface Reduction {
  /** Latin1, without context lines. */
  readonly patch: string
  /** Changed lines and files of `patch`. */
  readonly lines: number
  readonly files: readonly string[]
  /** Trials made; equal patches are tried once. */
  readonly trials: number
  /** True when no single line can be left out; false when the trials ran out before that was shown. */
  readonly minimal: boolean
}

const OUT_OF_TRIALS = Symbol('out of trials')

/** Reduces a change to the smallest part that passes: first by hunk, then by replaced line, then by single line. */
export async function reduceChange({
  files,
  passes,
  parallel,
  signal,
  maxTrials,
  onSmaller,
}: ReduceChangeOptions): Promise<Reduction> {
  // At most `maxTrials` entries.
  const known = new Map<string, boolean>()
  let trials = 0
  let best: readonly Edit[] = allEdits(files)

  const tryEdits = async (groups: readonly (readonly Edit[])[], trialSignal: AbortSignal): Promise<boolean> => {
    const patch = renderEdits(files, inOrder(groups.flat()))
    const before = known.get(patch)
    if (before !== undefined) return before
    if (trials >= maxTrials) throw OUT_OF_TRIALS
    trials += 1
    const passed = await passes(patch, trialSignal)
    known.set(patch, passed)
    return passed
  }

  let { lines } = measureEdits(files, best)
  let minimal = true
  try {
    for (const level of editLevels(files)) {
      const found = await ddmin({
        items: level(best),
        passes: tryEdits,
        parallel,
        onReduced: (groups) => {
          best = groups.flat()
          const now = measureEdits(files, inOrder(best)).lines
          if (now < lines) onSmaller?.({ lines: now, trials })
          lines = now
        },
        ...(signal === undefined ? {} : { signal }),
      })
      best = found.flat()
    }
  } catch (error) {
    if (error !== OUT_OF_TRIALS) throw error
    minimal = false
  }
  return { patch: renderEdits(files, inOrder(best)), ...measureEdits(files, inOrder(best)), trials, minimal }
}

function inOrder(edits: readonly Edit[]): Edit[] {
  return [...edits].sort((a, b) => a.file - b.file || a.hunk - b.hunk || a.line - b.line)
}
