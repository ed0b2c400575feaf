import { HermesError } from '@hermes-peer/protocol'
import type { Job } from './job.ts'
import { awaitedBy, withdraw } from './ways-back.ts'

/** Jobs from their admission to the end of their handler, by originator: bounded by what may be in flight. */
export interface Jobs {
  enter(job: Job): void
  leave(job: Job): void
  of(originator: string): Iterable<Job>
  count(originator: string): number
  all(): Iterable<Job>
  readonly size: number
  /** Those that nobody has aborted. */
  unfinished(): number
  /** Resolves once it holds; looks again whenever work ends, or `changed` is called. */
  when(holds: () => boolean): Promise<void>
  changed(): void
  /** Whether that neighbour waits for any of them. */
  awaitedBy(neighbour: string): boolean
  /** Jobs that nobody waits for, now that this neighbour does not; each with the reason to end it. */
  lost(neighbour: string): Iterable<readonly [Job, HermesError]>
  restarted(agentId: string, epoch: number): Iterable<readonly [Job, HermesError]>
  /** The same for one piece of work; undefined when the neighbour does not wait for it. */
  withdrawn(neighbour: string, messageId: string): readonly (readonly [Job, HermesError])[] | undefined
}

export function createJobs(): Jobs {
  const byOriginator = new Map<string, Set<Job>>()
  /** Bounded: the two of a drain. */
  const watching = new Set<() => void>()
  let size = 0
  const changed = (): void => {
    for (const look of watching) look()
  }
  const gone = (message: string) => new HermesError('CALLER_GONE', { message })

  function* all(): Iterable<Job> {
    for (const jobs of [...byOriginator.values()]) yield* [...jobs]
  }

  return {
    enter(job) {
      const { from } = job.incoming
      let jobs = byOriginator.get(from)
      if (!jobs) {
        jobs = new Set()
        byOriginator.set(from, jobs)
      }
      jobs.add(job)
      size++
    },
    leave(job) {
      const { from } = job.incoming
      const jobs = byOriginator.get(from)
      if (!jobs?.delete(job)) return
      size--
      if (jobs.size === 0) byOriginator.delete(from)
      changed()
    },
    unfinished: () => [...all()].filter(({ aborted }) => !aborted).length,
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
    of: (originator) => [...(byOriginator.get(originator) ?? [])],
    count: (originator) => byOriginator.get(originator)?.size ?? 0,
    all,
    get size() {
      return size
    },
    awaitedBy(neighbour) {
      for (const job of all()) if (awaitedBy(job).has(neighbour)) return true
      return false
    },
    *lost(neighbour) {
      for (const job of all()) {
        const waiting = awaitedBy(job)
        if (!waiting.has(neighbour)) continue
        // Whoever waits for it by another path still does.
        if (waiting.size > 1) withdraw(job, neighbour)
        else yield [job, gone(`${neighbour} was disconnected`)]
      }
    },
    *restarted(agentId, epoch) {
      for (const job of all()) {
        const { from, header, link } = job.incoming
        const asked = from === agentId && header.epoch <= epoch
        const cameBy = link.remote.agentId === agentId && link.remote.epoch <= epoch
        if (asked || cameBy) yield [job, gone(`${agentId} has restarted`)]
      }
    },
    withdrawn(neighbour, messageId) {
      const found = [...all()].filter((job) => job.record.messageId === messageId && awaitedBy(job).has(neighbour))
      if (found.length === 0) return undefined
      return found
        .filter((job) => withdraw(job, neighbour))
        .map((job) => [job, gone(`${neighbour} needs it no longer`)] as const)
    },
  }
}
