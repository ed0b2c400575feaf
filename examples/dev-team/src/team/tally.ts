import type { Balance } from '../cli/output.ts'
import type { AgentEvent, TeamEvent } from '../events.ts'

export interface Tally {
  observe(agent: string, event: AgentEvent | TeamEvent): void
  /** Sum over all agents and their lives of what each told last; what was in flight when one was killed is `cutOff`. */
  balance(): Balance
}

type Told = Extract<AgentEvent, { type: 'agent.balance' }>

export function createTally(): Tally {
  // One entry a life: six, and those of pm that follow a kill.
  const lives: Told[] = []
  const present = new Map<string, number>()
  return {
    observe(agent, event) {
      if (event.type === 'agent.restarted') present.delete(agent)
      if (event.type !== 'agent.balance') return
      const place = present.get(agent) ?? lives.length
      present.set(agent, place)
      lives[place] = event
    },
    balance() {
      const sum = (name: 'calls' | 'succeeded' | 'failed' | 'cancelled' | 'failovers'): number =>
        lives.reduce((all, life) => all + life[name], 0)
      const [calls, succeeded, failed] = [sum('calls'), sum('succeeded'), sum('failed')]
      const cutOff = calls - succeeded - failed
      return { calls, succeeded, failed, cancelled: sum('cancelled'), cutOff, failovers: sum('failovers') }
    },
  }
}
