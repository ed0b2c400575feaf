import type { Server } from './calls/server.ts'
import type { OwnState } from './directory/presence.ts'

/** What is reported of a server: it is as loaded as its fullest capability, or as its event loop is busy (0..1). */
export function ownState(options: {
  server: Pick<Server, 'load' | 'contracts' | 'success'>
  busy: number
  manifestSerial: number
}): OwnState {
  const { server, busy, manifestSerial } = options
  const load = server.load()
  return {
    capabilities: server.contracts().map(({ name }) => name),
    load: 100 * Math.max(load.fullness, busy),
    queueDepth: load.waiting,
    success: server.success(),
    manifestSerial,
  }
}
