import { failure } from '../failures.ts'
import type { Verdict } from './kary.ts'

/** One run of the test on a commit as it is. */
export interface Trial {
  readonly verdict: Verdict
  /** What the run said last, or why there was none. */
  readonly summary: string
}

export type RunTrial = (commit: string, signal?: AbortSignal) => Promise<Trial>

/**
 * Makes sure that a search can work: the good revision passes, the bad one fails, twice. All three runs at the same time.
 * Fails with `GOOD_FAILS`, `BAD_PASSES` or `FLAKY`.
 */
export async function confirmEnds(
  { good, bad }: { good: string; bad: string },
  run: RunTrial,
  signal?: AbortSignal,
): Promise<{ summary: string }> {
  const [atGood, first, second] = await Promise.all([run(good, signal), run(bad, signal), run(bad, signal)])
  if (atGood.verdict !== 'pass') {
    const again = await run(good, signal)
    if (again.verdict === 'pass') throw flaky(good, 'failed and then passed')
    throw failure(
      'GOOD_FAILS',
      `The good revision ${short(good)} fails as well: ${again.summary}`,
      'Give an older --good at which the test passes; check that --test runs in a clean checkout, else prepare it with --setup.',
    )
  }
  if (first.verdict !== second.verdict) throw flaky(bad, 'failed in one run and passed in another')
  if (first.verdict !== 'fail') {
    throw failure(
      'BAD_PASSES',
      `The bad revision ${short(bad)} does not fail: ${first.summary}`,
      'Nothing is broken there. Uncommitted changes are not looked at: commit them, or give another --bad.',
    )
  }
  return { summary: first.summary }
}

/** Makes sure that the culprit fails and the commit before it passes. Fails with `FLAKY`. */
export async function confirmCulprit(
  { culprit, parent }: { culprit: string; parent: string | undefined },
  run: RunTrial,
  signal?: AbortSignal,
): Promise<void> {
  const [atCulprit, before] = await Promise.all([
    run(culprit, signal),
    parent === undefined ? undefined : run(parent, signal),
  ])
  if (atCulprit.verdict !== 'fail') throw flaky(culprit, 'failed and then passed')
  if (before !== undefined && before.verdict !== 'pass') {
    throw failure(
      'FLAKY',
      `The search led to ${short(culprit)}, but the commit before it, ${short(parent as string)}, fails as well.`,
      'Either the test is flaky, or it broke more than once between the two revisions: choose a --good closer to --bad.',
    )
  }
}

function flaky(commit: string, what: string): Error {
  return failure(
    'FLAKY',
    `The test is flaky: ${short(commit)} ${what}, with nothing changed.`,
    'A search would blame the wrong commit. Narrow --test to a test that gives the same answer each time.',
  )
}

export function short(sha: string): string {
  return sha.slice(0, 7)
}
