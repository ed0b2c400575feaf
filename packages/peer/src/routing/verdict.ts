import { ERROR_TABLE, type ErrorRow, type HermesError } from '@hermes-peer/protocol'

/** What the end of a call says of the agent that was asked. */
export type Verdict = 'well' | 'failed' | 'nothing'

/**
 * A declared error is an answer as the contract says, so that the agent works. A refusal before the start says nothing: either
 * the caller asked for what it may not, or (`BUSY`, `DRAINING`) the agent tells by itself that others should be asked, and
 * to count that would throw out whoever works at full load. What the caller ended says nothing either. All else has failed:
 * a handler's error, a result that is not what the contract says, no answer in time, a lost link.
 */
export function verdictOf(error: HermesError): Verdict {
  if (error.declared) return 'well'
  const row = ERROR_TABLE[error.code] as ErrorRow
  if (row.notStarted || row.source === 'sender' || row.source === 'policy') return 'nothing'
  if (error.code === 'CALLER_GONE' || error.code === 'RESULT_GONE') return 'nothing'
  return 'failed'
}

/** The same for a link that was lost while the agent worked; one that it closed in good order tells of no fault. */
export function verdictOfLoss(error: HermesError): Verdict {
  return error.details.orderly === true || error.code === 'STOPPED' ? 'nothing' : 'failed'
}
