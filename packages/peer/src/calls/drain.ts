import { HermesError } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import { onAbort } from '../signals.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Caller } from './caller.ts'
import type { Server } from './server.ts'
import type { Streaming } from './streaming.ts'
import type { TaskProvider } from './tasks/provider.ts'

/** How a peer is stopped. */
export interface StopOptions {
  /** Longest time for what runs to end, ms, 0 for none. Default 25 s. */
  drainMs?: number
}

export interface DrainOptions {
  readonly agentId: string
  readonly server: Server
  readonly tasks: Pick<TaskProvider, 'drain' | 'unfinished'>
  readonly streaming: Pick<Streaming, 'written'>
  readonly caller: Caller
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  readonly drainMs: number
  /** Fires when nobody wants to wait any more. */
  readonly hurry: AbortSignal
  /** Tells others that no new work is taken. */
  announce(): void
}

/**
 * Takes no new work, hands back what waits, and lets what runs end, calls of its own for it included, and what it
 * sends as a stream be taken. What still runs after
 * `drainMs` is aborted, and has `abortGraceMs` to answer. Resolves with the count of what was aborted.
 */
export async function drain(options: DrainOptions): Promise<number> {
  const { agentId, server, tasks, streaming, caller, clock, tunables, telemetry, drainMs, hurry, announce } = options
  const within = (done: Promise<void>, ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clock.clear(timer)
        stopListening()
        resolve()
      }
      let stopListening = (): void => undefined
      const timer = clock.after(ms, end)
      if (signal) stopListening = onAbort(signal, end)
      void done.then(end)
    })

  const since = clock.monotonic()
  const { ended: answered, handedBack } = server.drain()
  const ended = Promise.all([answered, tasks.drain()]).then(() => undefined)
  caller.stop(new HermesError('STOPPED', { message: `${agentId} is stopping` }), { nested: false })
  const running = server.jobs.unfinished() + tasks.unfinished()
  if (running > 0 && drainMs > 0 && !hurry.aborted) {
    telemetry.emit('peer.draining', { agentId, running, handedBack, drainMs })
    announce()
    await within(ended, drainMs, hurry)
  }
  // What has ended may still be on its way: a signed end, or an answer in chunks. Without it its reader has nothing.
  const leftMs = drainMs - (clock.monotonic() - since)
  if (leftMs > 0 && !hurry.aborted) await within(streaming.written(), leftMs, hurry)
  const aborted = server.jobs.unfinished()
  if (aborted > 0) {
    server.stop(new HermesError('CALLER_GONE', { message: `${agentId} is stopping` }))
    await within(
      server.jobs.when(() => server.jobs.size === 0),
      tunables.abortGraceMs,
    )
  }
  return aborted
}
