import { type Capability, HermesError, type OutputOf } from '@hermes-peer/protocol'
import type { Answer } from '../api.ts'

/** What `call` makes of an answer: the output. Throws `CONFIRMATION_NEEDED` for a plan that waits. */
export function outputOf<C extends Capability>(contract: C, answer: Answer<C>): OutputOf<C> {
  if (answer.status === 'completed') return answer.output as OutputOf<C>
  throw new HermesError('CONFIRMATION_NEEDED', {
    message: `${answer.agent} answered ${contract.name} with a plan that waits for confirmation`,
    details: { partial_result: answer.partialResult, correlation_id: answer.correlationId, agent: answer.agent },
    messageId: answer.messageId,
    traceId: answer.traceId,
  })
}
