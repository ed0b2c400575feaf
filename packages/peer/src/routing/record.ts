import type { Tunables } from '../defaults.ts'
import type { Ask, Facts } from './facts.ts'

/** Numbers that a decision depends on. */
export type DecisionTunables = Pick<
  Tunables,
  'nearEqual' | 'breakerProbeShare' | 'newcomerShare' | 'provenCalls' | 'intentBand' | 'candidatesKept'
>

/** One choice with everything that it came from: plain JSON data, without the input of the call. */
export interface DecisionRecord {
  readonly version: 1
  /** Wall clock, ms. */
  readonly at: number
  readonly ask: Ask
  readonly facts: readonly Facts[]
  /** What was drawn, in order. */
  readonly draws: readonly number[]
  readonly tunables: DecisionTunables
  /** Kept for the call, best first; empty when nobody can serve it. */
  readonly chosen: readonly Chosen[]
}

export interface Chosen {
  readonly agentId: string
  readonly capability?: string
}
