import { type LinkedController, linkedController } from '../concurrency/linked-controller.ts'

/** `skip`: the commit cannot be tested. */
export type Verdict = 'pass' | 'fail' | 'skip'

export interface SearchOptions {
  /** Oldest first. The commit before the first is known to pass, the last is known to fail. At least one. */
  commits: readonly string[]
  /** How many commits can be tested at the same time; asked before each round, below 1 counts as 1. */
  parallel: () => number | Promise<number>
  /** Tests one commit. Its signal aborts as soon as the verdict would tell nothing any more. */
  test: (commit: string, signal: AbortSignal) => Promise<Verdict>
  signal?: AbortSignal
  observe?: (event: SearchEvent) => void
  /** Verdicts of the same search, begun earlier and cut off, in the order they came, and the rounds that it had begun. */
  known?: { readonly verdicts: ReadonlyMap<string, Verdict>; readonly rounds: number }
}

export type SearchEvent =
  | { readonly type: 'round'; readonly round: number; readonly suspects: number; readonly commits: readonly string[] }
  | { readonly type: 'verdict'; readonly commit: string; readonly verdict: Verdict }
  /** A run was ended because `because` had told more. */
  | { readonly type: 'irrelevant'; readonly commit: string; readonly because: string }

export interface SearchResult {
  /** One commit; several where those between cannot be tested. Oldest first. */
  readonly suspects: readonly string[]
  readonly rounds: number
}

/**
 * Finds the first failing commit by cutting the range into as many parts as can be tested at once: with k testers and n
 * commits it takes ⌈log n / log(k + 1)⌉ rounds. Rejects with the first error of a test; no test is running when it ends.
 */
export async function searchCulprit({
  commits,
  parallel,
  test,
  signal,
  observe,
  known,
}: SearchOptions): Promise<SearchResult> {
  const untestable = new Set<number>()
  let good = -1
  let bad = commits.length - 1
  let rounds = known?.rounds ?? 0
  const places = new Map(commits.map((commit, index) => [commit, index]))
  for (const [commit, verdict] of known?.verdicts ?? []) {
    const index = places.get(commit)
    // Of verdicts that contradict each other the first counts, as it does in a search that is not cut off.
    if (index !== undefined && index > good && index < bad) place(index, verdict)
  }

  for (;;) {
    const open = range(good + 1, bad).filter((index) => !untestable.has(index))
    if (open.length === 0) return { suspects: commits.slice(good + 1, bad + 1), rounds }
    const points = cut(open, await parallel())
    signal?.throwIfAborted()
    rounds += 1
    observe?.({
      type: 'round',
      round: rounds,
      suspects: bad - good,
      commits: points.map((index) => at(commits, index)),
    })
    await runRound(points)
  }

  function place(index: number, verdict: Verdict): void {
    if (verdict === 'skip') untestable.add(index)
    else if (verdict === 'pass') good = index
    else bad = index
  }

  async function runRound(points: readonly number[]): Promise<void> {
    const running = new Map(points.map((index) => [index, linkedController(signal)]))
    const failures: unknown[] = []
    await Promise.all(
      points.map(async (index) => {
        const controller = running.get(index) as LinkedController
        const commit = at(commits, index)
        try {
          const verdict = await test(commit, controller.signal)
          running.delete(index)
          if (!controller.signal.aborted) learn(index, commit, verdict)
        } catch (error) {
          running.delete(index)
          if (controller.signal.aborted && !signal?.aborted) return
          failures.push(error)
          for (const other of running.values()) other.abort(error)
        } finally {
          controller.dispose()
        }
      }),
    )
    if (failures.length > 0) throw failures[0]

    function learn(index: number, commit: string, verdict: Verdict): void {
      observe?.({ type: 'verdict', commit, verdict })
      place(index, verdict)
      for (const [other, controller] of running) {
        if ((other > good && other < bad) || controller.signal.aborted) continue
        observe?.({ type: 'irrelevant', commit: at(commits, other), because: commit })
        controller.abort()
      }
    }
  }
}

/** Rounds that `testers` need in the worst case; 1 tester is plain bisection. */
export function roundsNeeded(commits: number, testers: number): number {
  let rounds = 0
  for (let suspects = commits; suspects > 1; suspects = Math.ceil(suspects / (testers + 1))) rounds += 1
  return rounds
}

/** Up to `count` of the open commits, so that the parts between them are as equal as can be. */
function cut(open: readonly number[], count: number): number[] {
  const points = Math.max(1, Math.min(Math.floor(count), open.length))
  return Array.from({ length: points }, (_, i) =>
    at(open, Math.floor(((i + 1) * (open.length + 1)) / (points + 1)) - 1),
  )
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i)
}

function at<T>(list: readonly T[], index: number): T {
  const item = list[index]
  if (item === undefined) throw new RangeError(`index ${index} of ${list.length}`)
  return item
}
