import type { Clock } from '../clock.ts'
import type { Trust } from '../identity/trust.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { createPolicyGuard, NO_POLICY, type PolicyGuard } from './guard.ts'
import type { Policy } from './read.ts'
import { filePolicy, fixedPolicy } from './source.ts'

/** The policy of a running peer. */
export interface RunningPolicy extends PolicyGuard {
  /** Tells what counts, and follows the file from now on. */
  start(): void
  stop(): void
}

export interface OpenPolicyOptions {
  /** A path, rules that have been read, or none. */
  readonly policy: string | Policy | undefined
  readonly trust: Pick<Trust, 'membership'>
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly tunables: { readonly policyLookMs: number; readonly policyCounts: number }
}

/** Rejects with `INVALID_POLICY` when there is one that cannot be used. */
export async function openPolicy({
  policy,
  trust,
  clock,
  telemetry,
  tunables,
}: OpenPolicyOptions): Promise<RunningPolicy> {
  const notice = (guard: PolicyGuard): void => telemetry.emit('peer.notice', { text: guard.describe() })
  if (policy === undefined) return { ...NO_POLICY, start: () => notice(NO_POLICY), stop: () => undefined }
  const source =
    typeof policy === 'string'
      ? await filePolicy(policy, { clock, telemetry, lookMs: tunables.policyLookMs })
      : fixedPolicy(policy, { telemetry })
  const guard = createPolicyGuard({
    current: source.current,
    trust,
    clock,
    telemetry,
    counts: tunables.policyCounts,
  })
  return {
    ...guard,
    start() {
      source.watch()
      notice(guard)
    },
    stop: source.stop,
  }
}
