import { HermesError } from '@hermes-peer/protocol'

/** `OK`, or the code of what it throws. */
export function codeOf(run: () => unknown): string {
  try {
    run()
    return 'OK'
  } catch (error) {
    return HermesError.from(error).code
  }
}
