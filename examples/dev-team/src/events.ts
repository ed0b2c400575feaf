import type { FailureKind } from './failures.ts'

/** What an agent tells the process that started it, for showing only: the work itself goes from agent to agent. */
export type AgentEvent =
  | { type: 'agent.ready'; addresses: readonly string[] }
  | { type: 'agent.failed'; message: string; hint: string }
  /** A handler failed for a reason that is a fault of this program or of the machine. */
  | { type: 'agent.fault'; capability: string; reason: string }
  /** Told by SIGTERM to go: it takes no new work, and ends what runs. */
  | { type: 'agent.draining'; running: number }
  | { type: 'agent.balance'; calls: number; succeeded: number; failed: number; cancelled: number; failovers: number }
  | { type: 'team.found'; testers: number; coder: string; reviewer: string }
  | {
      type: 'call.chosen'
      capability: string
      to: string
      reasons: readonly string[]
      work: string | undefined
      attempt: number
    }
  | {
      type: 'call.failover'
      capability: string
      from: string
      to: string
      code: string
      work: string | undefined
      effects: string
    }
  /** The runtime gave up on a call; `code` is that of its error, or a name that the capability declares. */
  | { type: 'call.failed'; capability: string; code: string; work: string | undefined }
  | { type: 'run.started'; commit: string; patched: boolean }
  | { type: 'run.ended'; commit: string; patched: boolean; passed: boolean; ms: number }
  | { type: 'run.cancelled'; commit: string; patched: boolean }
  /** Text that a command wrote at agent `by`, as it came. */
  | { type: 'run.output'; by: string; commit: string; text: string; leftOut?: number | undefined }
  /** Another life of pm goes on from the notes of the one before: runs of the test, the culprit, the task handed over. */
  | {
      type: 'job.resumed'
      runs: number
      culprit: string | undefined
      task: { id: string; agent: string } | undefined
    }
  | { type: 'search.confirmed'; summary: string }
  | { type: 'search.round'; round: number; suspects: number; commits: readonly string[] }
  | { type: 'search.verdict'; commit: string; verdict: 'pass' | 'fail' | 'skip' }
  | { type: 'search.cancelled'; commit: string; because: string }
  | { type: 'search.culprit'; commit: string; subject: string; rounds: number; alone: number }
  | { type: 'repair.planned'; by: string; lines: number; files: readonly string[]; conflicts: readonly string[] }
  | { type: 'repair.submitted'; to: string; taskId: string; commit: string }
  | { type: 'repair.confirmed'; by: string; taskId: string }
  /** `fraction` of the work, 0 to 1. */
  | { type: 'repair.progress'; by: string; fraction: number; note: string }
  | { type: 'repair.reduced'; by: string; lines: number; files: readonly string[]; trials: number; minimal: boolean }
  | { type: 'repair.proposal'; by: string; accepted: boolean; note: string }
  | { type: 'review.done'; by: string; of: 'smallest' | 'whole'; accepted: boolean; suite: string; types: string }
  | {
      type: 'job.done'
      file: string
      reversalFile: string | undefined
      traceId: string
      earlierTraceIds: readonly string[]
    }
  | { type: 'job.failed'; kind: FailureKind; message: string; hint: string }

/** What the starting process notices itself. */
export type TeamEvent =
  | {
      type: 'job.started'
      commits: number
      agents: number
      model: string | undefined
      sample: boolean
      notes: readonly string[]
    }
  /** With `kill -9`, as a fault that is meant: in the middle of a run of that commit, or of the repair. */
  | { type: 'agent.killed'; agent: string; commit: string | undefined }
  /** The `life` of an agent that follows one which was killed: the same key, journal and notes. */
  | { type: 'agent.restarted'; agent: string; life: number }
  | { type: 'agent.lost'; agent: string; how: string }

/** One line of `--json`: an event, who it is about, and the seconds since the start. */
export type JobEvent = { readonly at: number; readonly agent: string } & (AgentEvent | TeamEvent)
