import type { AgentEvent, TeamEvent } from '../events.ts'

export interface Tally {
  observe(event: AgentEvent | TeamEvent): void
  /** Sum of the balances that the agents told when they stopped. */
  balance(): { calls: number; succeeded: number; failed: number; cancelled: number; failovers: number }
}

export function createTally(): Tally {
  const sum = { calls: 0, succeeded: 0, failed: 0, cancelled: 0, failovers: 0 }
  return {
    observe(event) {
      if (event.type !== 'agent.balance') return
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += event[name]
    },
    balance: () => ({ ...sum }),
  }
}
