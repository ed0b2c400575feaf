import type { Job } from './job.ts'

/** The work that is here, waiting and running, by caller: bounded by what may be in flight. */
export interface Jobs {
  enter(job: Job): void
  leave(job: Job): void
  /** A copy: what is done to one of them may end others. */
  of(agentId: string): Job[]
  all(): Job[]
  countOf(agentId: string): number
  readonly count: number
  /** Those that nobody has aborted. */
  unfinished(): number
  /** Resolves once it holds; looks again whenever work ends, or `changed` is called. */
  when(holds: () => boolean): Promise<void>
  changed(): void
}

export function createJobs(): Jobs {
  const byCaller = new Map<string, Set<Job>>()
  /** Bounded: the two of a drain. */
  const watching = new Set<() => void>()
  let count = 0
  const changed = (): void => {
    for (const look of watching) look()
  }
  const all = (): Job[] => [...byCaller.values()].flatMap((jobs) => [...jobs])
  return {
    enter(job) {
      const { from } = job.incoming
      const jobs = byCaller.get(from) ?? new Set()
      byCaller.set(from, jobs)
      jobs.add(job)
      count++
    },
    leave(job) {
      const { from } = job.incoming
      const jobs = byCaller.get(from)
      if (!jobs?.delete(job)) return
      count--
      if (jobs.size === 0) byCaller.delete(from)
      changed()
    },
    of: (agentId) => [...(byCaller.get(agentId) ?? [])],
    all,
    countOf: (agentId) => byCaller.get(agentId)?.size ?? 0,
    get count() {
      return count
    },
    unfinished: () => all().filter(({ aborted }) => !aborted).length,
    when(holds) {
      if (holds()) return Promise.resolve()
      return new Promise((resolve) => {
        const look = (): void => {
          if (!holds()) return
          watching.delete(look)
          resolve()
        }
        watching.add(look)
      })
    },
    changed,
  }
}
