import type { Balance, Peer } from 'hermes-peer'
import { review, runTests, watchTests } from '../contracts.ts'
import type { AgentEvent } from '../events.ts'

/** Short names of the work that calls are about, by correlation id. */
export interface WorkNames {
  name(correlationId: string, work: string): void
  forget(correlationId: string): void
  /** Who was chosen last for the call of that name. */
  agentOf(correlationId: string): string | undefined
}

const EFFECTS = new Map([runTests, watchTests, review].map(({ name, effects }) => [name, effects as string]))

/** Turns the peer's own events about outgoing calls into those that are shown, and counts them. */
export function forwardCalls(
  peer: Peer,
  report: (event: AgentEvent) => void,
): { work: WorkNames; balance(): Omit<Balance, 'inFlight'> & { cancelled: number } } {
  // One entry for each call in flight, at most as many as there are testers.
  const names = new Map<string, { work: string; agent?: string }>()
  let cancelled = 0
  const workOf = (id: string | undefined): string | undefined => (id === undefined ? undefined : names.get(id)?.work)
  const balance = () => {
    const { calls, succeeded, failed, failovers } = peer.balance()
    return { calls, succeeded, failed, failovers, cancelled }
  }
  // Each time, as nobody can ask an agent that was killed; once what has just ended is counted.
  const told = (): void => void setImmediate(() => report({ type: 'agent.balance', ...balance() }))

  peer.events.on('call.chosen', ({ capability, agentId, reasons, correlationId, attempt }) => {
    if (capability.startsWith('hermes.')) return
    const named = correlationId === undefined ? undefined : names.get(correlationId)
    if (named !== undefined) named.agent = agentId
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
    told()
  })
  peer.events.on('task.acknowledged', told)
  return {
    work: {
      name: (id, work) => names.set(id, { work }),
      forget: (id) => names.delete(id),
      agentOf: (id) => names.get(id)?.agent,
    },
    balance,
  }
}
