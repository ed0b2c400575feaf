import type { SeededRandom } from '@hermes-peer/testkit'

/** What breaks: a link (`forMs`: after so many bytes), a network, a process. */
export type Breaking = 'cut' | 'delay' | 'halfOpen' | 'stall' | 'partition' | 'heal' | 'crash' | 'restart'

/** One thing that happens at a time of the run, in virtual ms. */
export interface Step<Kind extends string> {
  at: number
  kind: Kind | Breaking
  agent: string
  other: string
  forMs: number
}

export type FaultStep = Step<Breaking>

/**
 * Collects all that will happen, in order of time, before anything happens: the run itself draws nothing that could
 * shift it.
 */
export interface Planner<Kind extends string> {
  /** Who is not named is drawn. Returns who it was. */
  add(kind: Kind | Breaking, at: number, more?: Partial<Omit<Step<Kind>, 'at' | 'kind'>>): Step<Kind>
  /** The same for so many moments of the work; a part of one is a chance. */
  often(times: number, kind: Kind | Breaking, forMs?: () => number): void
  steps(): Step<Kind>[]
}

export function createPlanner<Kind extends string>(options: {
  random: SeededRandom
  workMs: number
  agents: readonly string[]
}): Planner<Kind> {
  const { random, workMs, agents } = options
  const steps: Step<Kind>[] = []
  const planner: Planner<Kind> = {
    add(kind, at, { agent, other, forMs = 0 } = {}) {
      const one = agent ?? random.pick(agents.filter((id) => id !== other))
      const step = { kind, at, agent: one, other: other ?? random.pick(agents.filter((id) => id !== one)), forMs }
      steps.push(step)
      return step
    },
    often(times, kind, forMs = () => 0) {
      const whole = Math.floor(times) + (random.chance(times % 1) ? 1 : 0)
      for (let i = 0; i < whole; i++) planner.add(kind, random.int(0, workMs), { forMs: forMs() })
    },
    steps: () => steps.sort((a, b) => a.at - b.at),
  }
  return planner
}
