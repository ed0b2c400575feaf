/** Where an error arose, as told on the wire. */
export type ErrorSource = 'sender' | 'receiver' | 'tool' | 'llm' | 'network' | 'policy'

/** One row of the error table. */
export interface ErrorRow {
  /** What happened, one sentence without names or values. */
  readonly sentence: string
  /** Whether the same work may succeed when it is tried again. */
  readonly retryable: boolean
  readonly source: ErrorSource
  /** What the reader can do about it. */
  readonly hint: string
  /**
   * True when the code is a promise that no handler was started for that attempt, so that even a capability with
   * effects `once` may be asked elsewhere.
   */
  readonly notStarted?: true
  /** True when only this process says it; such a code is refused on the wire. */
  readonly local?: true
}

export const row = (
  source: ErrorSource,
  retryable: boolean,
  sentence: string,
  hint: string,
  more: Pick<ErrorRow, 'notStarted' | 'local'> = {},
): ErrorRow => ({ sentence, retryable, source, hint, ...more })

export const NOT_STARTED = { notStarted: true } as const
export const LOCAL = { local: true } as const
