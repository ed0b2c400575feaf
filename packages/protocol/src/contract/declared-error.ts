import { isHermesError } from '../errors/hermes-error.ts'
import type { Capability, DeclaredErrorOf, ErrorsOf } from './types.ts'

/** Whether a caught value is the business error that a contract declares under that name; types its `data`. */
export function isError<C extends Capability, N extends ErrorsOf<C>>(
  error: unknown,
  contract: C,
  name: N,
): error is DeclaredErrorOf<C, N> {
  return isHermesError(error) && error.declared?.name === name && Object.hasOwn(contract.schemas.errors, name)
}
