import { HermesError } from '@hermes-peer/protocol'
import type { CallGuard } from '../policy/guard.ts'

/** Whether this agent's own policy lets it ask for that. `agentId` undefined: everyone who listens. Throws `POLICY_DENIED` that names the rule. */
export function checkOwnPolicy(
  policy: CallGuard,
  agentId: string | undefined,
  capability: string,
  input: { readonly value: unknown },
): void {
  const denied = policy.denies(agentId, capability, input)
  if (denied === undefined) return
  throw new HermesError('POLICY_DENIED', {
    message: `${capability}${agentId === undefined ? '' : ` of ${agentId}`}: ${denied}`,
    hint: 'It is this agent itself that may not ask for it: change the rules under call in its policy.',
  })
}
