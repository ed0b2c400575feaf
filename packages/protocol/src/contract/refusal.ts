import { HermesError } from '../errors/hermes-error.ts'
import { pointerTo } from '../payload/pointer.ts'

interface InvalidContractOptions {
  /** Place inside the schema at `path`, a JSON Pointer. */
  within?: string
  cause?: unknown
}

/** `INVALID_CONTRACT` that names the capability and the place in its contract; details are `{path, issue}`. */
export function invalidContract(
  capability: string,
  path: readonly string[],
  issue: string,
  options: InvalidContractOptions = {},
): HermesError {
  const pointer = pointerTo(path) + (options.within ?? '')
  return new HermesError('INVALID_CONTRACT', {
    message: `capability ${capability}: ${pointer.slice(1) || 'the contract'} ${issue}`,
    details: { path: pointer, issue },
    ...(options.cause === undefined ? {} : { cause: options.cause }),
  })
}
