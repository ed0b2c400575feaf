import type { Incoming } from '../delivery/inbox.ts'
import type { Link } from '../link/link.ts'
import { withSignal } from '../signals.ts'
import type { Keys } from './keys.ts'

/**
 * Sees to it that the manifests of those that a message has come by are at hand: the next agent may ask for them. Those that are
 * missing are asked of the neighbour it came from. Resolves with whether all are there.
 */
export async function haveProofs(
  keys: Pick<Keys, 'document' | 'learn'>,
  { from, via, header }: Pick<Incoming, 'from' | 'via' | 'header'>,
  neighbour: Link | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const signed = (agentId: string) => (agentId === from ? header.sender.key : undefined)
  const missing = () => [...new Set([from, ...via])].filter((agentId) => !keys.document(agentId, signed(agentId)))
  const asked = missing()
  if (asked.length === 0) return true
  if (!neighbour || neighbour.state === 'closed') return false
  await withSignal(Promise.all(asked.map((agentId) => keys.learn(neighbour, agentId, signed(agentId)))), signal)
  return missing().length === 0
}
