import { checkName, HermesError } from '@hermes-peer/protocol'
import type { CallOptions } from './api.ts'
import { checkCallOptions } from './call-spec.ts'
import { checkIntent } from './checks.ts'
import type { Clock } from './clock.ts'
import type { Tunables } from './defaults.ts'
import type { Candidate } from './routing/query.ts'
import type { Runtime } from './runtime.ts'

export interface TargetParts {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly tunables: Tunables
  /** Of the call being served. */
  readonly path: readonly string[]
  /** Bounds work by time and signal. */
  limited<T>(times: { timeoutMs?: number; signal?: AbortSignal }, work: (signal: AbortSignal) => Promise<T>): Promise<T>
}

/**
 * The capability that is called, and the options for it: with an intent, the one that means it, asked of those agents only that mean
 * it by that name. Rejects with `INVALID_NAME`, `INVALID_OPTION`, `NO_CANDIDATE`, `TIMEOUT`.
 */
export async function targetOf(
  target: string | { intent: string },
  options: CallOptions,
  { runtime, clock, tunables, path, limited }: TargetParts,
): Promise<{ capability: string; options: CallOptions }> {
  if (typeof target !== 'object' || target === null) return { capability: checkName('capability', target), options }
  const { intent, ...rest } = target
  const other = Object.keys(rest)[0]
  if (other !== undefined) refuse(`target.${other}`, 'is not a field of a target; it has intent alone')
  if (intent === undefined) refuse('target', 'must be the name of a capability, or an object with intent')
  checkIntent(intent, 'target.intent')
  if (options.intent !== undefined) refuse('intent', 'is given by the target already')
  checkCallOptions(options)
  const { agent, where, sla, signal, timeoutMs = tunables.callTimeoutMs } = options
  const since = clock.monotonic()
  const [best] = await limited({ timeoutMs, ...(signal === undefined ? {} : { signal }) }, (stop) =>
    runtime.router.choose(
      {
        intent,
        path,
        ...(agent === undefined ? {} : { agent }),
        ...(where === undefined ? {} : { where }),
        ...(sla === undefined ? {} : { sla }),
      },
      { signal: stop },
    ),
  )
  const left = Math.max(1, timeoutMs - (clock.monotonic() - since))
  return { capability: (best as Candidate).capability as string, options: { ...options, intent, timeoutMs: left } }
}

function refuse(field: string, why: string): never {
  throw new HermesError('INVALID_OPTION', { message: `${field} ${why}`, details: { field } })
}
