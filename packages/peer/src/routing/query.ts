/** What is looked for. At least one of `capability` and `agent` is given. */
export interface Query {
  capability?: string
  agent?: string
  where?: Readonly<Record<string, string>>
}

/** A peer that could serve a call, with the reasons for its rank. */
export interface Candidate {
  readonly agentId: string
  /** 0..1, higher is better; see behaviour of ranking. NaN when filtered out. */
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
  readonly labels: Readonly<Record<string, string | readonly string[]>>
  readonly status: 'online' | 'suspect' | 'offline' | 'draining' | 'unknown'
}
