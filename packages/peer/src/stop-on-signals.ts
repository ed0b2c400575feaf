import type { Peer } from './api.ts'
import { systemClock } from './clock.ts'
import { DEFAULTS } from './defaults.ts'

export interface StopOnSignalsOptions {
  /** Default `SIGTERM` and `SIGINT`. */
  signals?: readonly NodeJS.Signals[]
  /** Longest time for what runs to end, ms. Default 25 s. */
  drainMs?: number
}

/** Sockets close in milliseconds; what hangs for longer must not keep a process that was told to go. */
const CLOSE_MS = 3000

/**
 * Makes this process end in good order: at the first signal the peer drains, then the process exits with 0, or with 1 when
 * work had to be aborted; at the second signal it exits at once with 128 + the signal's number, as a shell tells it. It is
 * gone `drainMs` + 3 s after the first signal, whatever happens. Returns the way to take the handlers off again.
 */
export function stopOnSignals(peer: Peer, options: StopOnSignalsOptions = {}): () => void {
  const { signals = ['SIGTERM', 'SIGINT'], drainMs = DEFAULTS.drainMs } = options
  const numbers: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 }
  let stopping = false
  const handle = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(128 + (numbers[signal] ?? 0))
    stopping = true
    let code = 0
    peer.events.on('peer.stopped', ({ aborted }) => {
      code = aborted > 0 ? 1 : 0
    })
    systemClock().after(drainMs + CLOSE_MS, () => process.exit(1))
    peer.stop({ drainMs }).then(
      () => process.exit(code),
      () => process.exit(1),
    )
  }
  for (const signal of signals) process.on(signal, handle)
  return () => {
    for (const signal of signals) process.off(signal, handle)
  }
}
