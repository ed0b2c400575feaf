import type { Clock } from '../clock.ts'
import type { Trust } from '../identity/trust.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Delegations } from './delegations.ts'
import { type Asked, createPolicyGuard, NO_POLICY, type PolicyGuard, type ServeGuard } from './guard.ts'
import { type Policy, policyOfObject } from './read.ts'
import { filePolicy, fixedPolicy } from './source.ts'

/** The policy of a running peer. */
export interface RunningPolicy extends PolicyGuard {
  readonly delegations: Delegations
  /** Tells what counts, and follows the file from now on. */
  start(): void
  stop(): void
}

export interface OpenPolicyOptions {
  /** A path, rules that have been read, or none. */
  readonly policy: string | Policy | undefined
  readonly trust: Pick<Trust, 'membership'>
  readonly delegations: Delegations
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly tunables: { readonly policyLookMs: number; readonly policyCounts: number }
}

/** Rejects with `INVALID_POLICY` when there is one that cannot be used. */
export async function openPolicy(options: OpenPolicyOptions): Promise<RunningPolicy> {
  const { policy, trust, delegations, clock, telemetry, tunables } = options
  const common = { trust, delegations, clock, telemetry, counts: tunables.policyCounts }
  const notice = (guard: PolicyGuard): void => telemetry.emit('peer.notice', { text: guard.describe() })
  if (policy === undefined) {
    const serve = servingAll(createPolicyGuard({ current: () => EVERYTHING, ...common }).serve)
    return { ...NO_POLICY, serve, delegations, start: () => notice(NO_POLICY), stop: () => undefined }
  }
  const source =
    typeof policy === 'string'
      ? await filePolicy(policy, { clock, telemetry, lookMs: tunables.policyLookMs })
      : fixedPolicy(policy, { telemetry })
  const guard = createPolicyGuard({ current: source.current, ...common })
  return {
    ...guard,
    delegations,
    start() {
      source.watch()
      notice(guard)
    },
    stop: source.stop,
  }
}

const EVERYTHING: Policy = policyOfObject({ serve: [{ principal: '*', capability: '*' }] })

/** Without a policy only those are judged who come with somebody else's authority: a delegation that does not hold is none. */
function servingAll(guard: ServeGuard): ServeGuard {
  const by = ({ header }: Asked): ServeGuard => (header.delegation === undefined ? NO_POLICY.serve : guard)
  return {
    shape: (asked) => by(asked).shape(asked),
    admit: (asked) => by(asked).admit(asked),
    again: (asked, ...rest) => by(asked).again(asked, ...rest),
    resume: (asked) => by(asked).resume(asked),
  }
}
