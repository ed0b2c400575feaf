import type { Balance, Peer } from 'hermes-peer'
import { repair, review, runTests } from '../contracts.ts'
import type { AgentEvent } from '../events.ts'

/** Short names of the work that calls are about, by correlation id. */
export interface WorkNames {
  name(correlationId: string, work: string): void
  forget(correlationId: string): void
}

const EFFECTS = new Map([runTests, repair, review].map(({ name, effects }) => [name, effects as string]))

/** Turns the peer's own events about outgoing calls into those that are shown, and counts them. */
export function forwardCalls(
  peer: Peer,
  report: (event: AgentEvent) => void,
): { work: WorkNames; balance(): Omit<Balance, 'inFlight'> & { cancelled: number } } {
  // One entry for each call in flight, at most as many as there are testers, and one for the repair.
  const names = new Map<string, string>()
  let cancelled = 0
  const workOf = (id: string | undefined): string | undefined => (id === undefined ? undefined : names.get(id))

  peer.events.on('call.chosen', ({ capability, agentId, reasons, correlationId, attempt }) => {
    if (capability.startsWith('hermes.')) return
    report({ type: 'call.chosen', capability, to: agentId, reasons, work: workOf(correlationId), attempt })
  })
  peer.events.on('call.failover', ({ capability, from, to, code, correlationId }) => {
    report({
      type: 'call.failover',
      capability,
      from,
      to,
      code,
      work: workOf(correlationId),
      effects: EFFECTS.get(capability) ?? 'unknown',
    })
  })
  peer.events.on('call.ended', ({ code, capability, correlationId }) => {
    if (code === 'CANCELLED') cancelled += 1
    else if (code !== 'OK') report({ type: 'call.failed', capability, code, work: workOf(correlationId) })
  })
  return {
    work: {
      name: (id, work) => names.set(id, work),
      forget: (id) => names.delete(id),
    },
    balance() {
      const { calls, succeeded, failed, failovers } = peer.balance()
      return { calls, succeeded, failed, failovers, cancelled }
    },
  }
}
