/** What is looked for. At least one of `capability`, `agent` and `intent` is given. */
export interface Query {
  capability?: string
  agent?: string
  /** Only candidates whose labels equal these, or contain them, where the label is a list. */
  where?: Readonly<Record<string, string>>
  /** What is wanted in plain words, in any language, up to 2,048 characters: only candidates that mean it. */
  intent?: string
  /** Hard conditions: only candidates that keep them. */
  sla?: Sla
}

/**
 * Conditions that a candidate must keep. What is measured here counts; of an agent that was hardly asked yet, what it reports, and
 * what is not known of it breaks no condition.
 */
export interface Sla {
  /**
   * Most that the median, and 99 of 100 calls, may take, ms; judged from 5 and from 20 calls of the last five minutes on. Until
   * then what its manifest promises as `p99_ms` counts, where it does.
   */
  p50Ms?: number
  p99Ms?: number
  /** Least share of calls that succeed, 0..1. */
  success?: number
  /** Most that it may cost, 1..5; whoever says nothing counts as 3. */
  costLevel?: number
  /** Highest load, 0..100, as it last reported. */
  load?: number
}

/** A peer that could serve a call, with the reasons for its rank. */
export interface Candidate {
  readonly agentId: string
  /** What it would be asked for: the capability of the query, or with an intent alone the one that means it. */
  readonly capability: string | undefined
  /** 0..1, and up to 0.1 more when it is endorsed; higher is better. NaN when filtered out. */
  readonly score: number
  readonly usable: boolean
  /** One short sentence each: why it ranks there, or why it is left out. */
  readonly reasons: readonly string[]
  /** 0..100 as the peer last reported. */
  readonly load: number
  /** Median of calls measured here, ms; undefined before the first. */
  readonly p50Ms: number | undefined
  /** Calls measured here. */
  readonly measured: number
  /** Share of them that succeeded. */
  readonly success: number
  /** How near it is to the intent, 0..1; undefined without one. */
  readonly near: number | undefined
  readonly labels: Readonly<Record<string, string | readonly string[]>>
  /**
   * A directory could not be asked for this capability lately: the choice rests on what was known before, and others may offer it too.
   */
  readonly stale: boolean
  readonly status: 'online' | 'suspect' | 'offline' | 'draining' | 'unknown'
}
