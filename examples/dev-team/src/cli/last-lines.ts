import type { JobEvent } from '../events.ts'
import { printable } from '../process/printable.ts'
import { short } from '../search/confirm.ts'

/** A run that takes longer than this is told of, s. */
const LONG_RUN_S = 3
/** All that is told of the output of runs is one line in this time, s: who wants all of it reads `--json`. */
const EVERY_S = 5

/** Tells people sparingly what long runs write: their last line, from time to time. */
export function createLastLines(): { describe(event: JobEvent): string | undefined } {
  // One entry for each agent whose runs are watched.
  const runs = new Map<string, { commit: string; since: number; rest: string }>()
  let toldAt = Number.NEGATIVE_INFINITY
  return {
    describe(event) {
      if (event.type === 'run.started') runs.set(event.agent, { commit: event.commit, since: event.at, rest: '' })
      if (event.type === 'run.ended' || event.type === 'run.cancelled') runs.delete(event.agent)
      if (event.type === 'review.done') runs.delete(event.by)
      if (event.type !== 'run.output') return undefined
      const { by, commit, text, at } = event
      const known = runs.get(by)
      const run = known?.commit === commit ? known : { commit, since: at, rest: '' }
      runs.set(by, run)
      const lines = (run.rest + text).split('\n')
      // The end of a line may still be on its way; only what can be shown of it is kept.
      run.rest = (lines.at(-1) ?? '').slice(-1_000)
      const line = lines
        .slice(0, -1)
        .map((one) => printable(one, 100))
        .findLast((one) => one !== '')
      if (line === undefined || at - run.since < LONG_RUN_S || at - toldAt < EVERY_S) return undefined
      toldAt = at
      return `${by}, ${short(commit)} for ${Math.round(at - run.since)} s: ${line}`
    },
  }
}
