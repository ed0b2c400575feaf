/**
 * Why the job can end without a patch, with the exit code of each. The codes are part of the command's interface.
 */
export const EXIT_CODES = {
  OTHER: 1,
  USAGE: 2,
  NO_GIT: 3,
  NOT_A_REPOSITORY: 4,
  UNKNOWN_REVISION: 5,
  GOOD_FAILS: 6,
  BAD_PASSES: 7,
  FLAKY: 8,
  NOT_A_DESCENDANT: 9,
  TEST_NOT_FOUND: 10,
  NO_REPAIR: 11,
} as const

export type FailureKind = keyof typeof EXIT_CODES

/** An input or a state that the job cannot go on with; says what is wrong and what to do, and is shown without a stack. */
export interface Failure extends Error {
  readonly kind: FailureKind
  readonly hint: string
}

class JobFailure extends Error implements Failure {
  override readonly name = 'JobFailure'
  readonly kind: FailureKind
  readonly hint: string

  constructor(kind: FailureKind, message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.hint = hint
  }
}

export function failure(kind: FailureKind, message: string, hint = '', cause?: unknown): Failure {
  return new JobFailure(kind, message, hint, cause)
}

export function isFailure(value: unknown): value is Failure {
  return value instanceof JobFailure
}
