import type { AgentEvent } from '../events.ts'

/**
 * Picks the tester to be killed in the sample: the one that runs the piece of work of the first round which the search needs
 * in any case, the last commit tested before the culprit. Any other may be cancelled before its failover shows.
 */
export interface StagedKill {
  /** Told every event; returns the agent to kill, once, while it runs that piece of work. */
  observe(agentId: string, event: AgentEvent): { agentId: string; commit: string } | undefined
}

export function stageKill({ commits, culprit }: { commits: readonly string[]; culprit: string }): StagedKill {
  const place = new Map(commits.map((commit, i) => [commit, i]))
  // At most one entry a tester.
  const running = new Map<string, string>()
  let target: string | undefined
  let done = false
  return {
    observe(agentId, event) {
      if (done) return undefined
      if (event.type === 'run.started') running.set(agentId, event.commit)
      if (event.type === 'run.ended' || event.type === 'run.cancelled') running.delete(agentId)
      if (event.type === 'search.round') {
        const before = event.commits.filter((commit) => (place.get(commit) ?? 0) < (place.get(culprit) ?? 0))
        target = before.at(-1)
      }
      const victim = [...running].find(([, commit]) => commit === target)
      if (victim === undefined) return undefined
      done = true
      return { agentId: victim[0], commit: victim[1] }
    },
  }
}

/** Says when pm is to be killed: once, when its coder has begun to make the repair smaller, which needs many more runs. */
export function stagePmKill(): { observe(agentId: string, event: AgentEvent): boolean } {
  let done = false
  return {
    observe(agentId, event) {
      if (done || agentId !== 'pm' || event.type !== 'repair.progress') return false
      done = true
      return true
    },
  }
}
