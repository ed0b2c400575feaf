import type { TestRun } from '../agents/test-client.ts'
import type { Notes, Stage } from './notes.ts'

/** What is kept of a run. */
export type NotedRun = Pick<TestRun, 'verdict' | 'summary' | 'reason'>
type Run = (commit: string, signal?: AbortSignal) => Promise<NotedRun>

/**
 * Writes down what each run of one stage comes to. A run that an earlier life has noted is not made again: each note stands
 * for one run, so that a commit which is tested twice on purpose still is.
 */
export function notedRuns(notes: Notes, stage: Stage, run: Run): Run {
  const before = notes.all('run').filter((note) => note.stage === stage)
  return async (commit, signal) => {
    const known = before.findIndex((note) => note.commit === commit)
    if (known >= 0) return before.splice(known, 1)[0] as NotedRun
    const { verdict, summary, reason } = await run(commit, signal)
    const told = { verdict, summary, ...(reason === undefined ? {} : { reason }) }
    // The verdict of a run that nobody waits for any more would be no part of the search that is gone on with.
    if (!signal?.aborted) notes.add({ note: 'run', stage, commit, ...told })
    return told
  }
}
