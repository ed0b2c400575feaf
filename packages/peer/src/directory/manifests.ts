import { deepFreeze, type JsonObject, type Manifest } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import { onAbort } from '../signals.ts'
import type { Entry } from './entry.ts'

export interface AskAllOptions {
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly tunables: Tunables
  /** Everybody is asked about, whoever it is: whoever takes longer than a look-up is known by names only. */
  readonly hurried: boolean
}

/** Asks for the manifests of agents, some at a time where everybody is meant; who gives none is left as it is. */
export async function askAll(
  entries: readonly Entry[],
  ask: (entry: Entry, signal: AbortSignal) => Promise<unknown>,
  { signal, clock, tunables, hurried }: AskAllOptions,
): Promise<void> {
  const stop = new AbortController()
  const timer = hurried ? clock.after(tunables.lookupTimeoutMs, () => stop.abort()) : undefined
  const release = onAbort(signal, () => stop.abort(signal.reason))
  try {
    const step = hurried ? tunables.manifestsAsked : entries.length
    for (let at = 0; at < entries.length && !stop.signal.aborted; at += step) {
      const part = entries.slice(at, at + step)
      await Promise.all(part.map((entry) => ask(entry, stop.signal).catch(() => undefined)))
    }
  } finally {
    clock.clear(timer)
    release()
  }
}

/** The parsed, frozen object is what routing and users see. */
export function deepFreezeManifest(manifest: Manifest): Manifest {
  for (const entry of manifest.capabilities) deepFreeze(entry as unknown as JsonObject)
  Object.freeze(manifest.capabilities)
  return Object.freeze(manifest)
}
