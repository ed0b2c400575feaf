import { CODES_OF_USE } from './codes-of-use.ts'
import { CODES_OF_WORK } from './codes-of-work.ts'

export type { ErrorRow, ErrorSource } from './row.ts'

/** The closed table of codes. An unknown code from a newer peer is treated as not retryable. */
export const ERROR_TABLE = { ...CODES_OF_USE, ...CODES_OF_WORK } as const

/** A code of the closed table. */
export type ErrorCode = keyof typeof ERROR_TABLE

/** Whether a string is a code of the table. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_TABLE, value)
}
