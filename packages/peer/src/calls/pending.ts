import type { HermesError } from '@hermes-peer/protocol'
import type { Incoming } from '../delivery/inbox.ts'

/** One attempt that waits for its answer. */
export interface PendingAttempt {
  readonly leaf: string
  readonly agentId: string
  /** The life of the agent that it was sent to. */
  readonly epoch: number
  /** What answers it, beside an error. Default `response`. */
  readonly takes?: 'response' | 'ack'
  answered(incoming: Incoming): void
  /** The last link to the agent is gone. */
  lost(reason: Error): void
  /** An answer came along the hops whose maker cannot be verified. */
  distrusted(error: HermesError): void
}

/**
 * Attempts by leaf: an answer is accepted only for one of these, over a link of the agent it was sent to, whoever along the hops
 * from there has made it.
 */
export interface Pending {
  add(attempt: PendingAttempt): void
  remove(attempt: PendingAttempt): void
  /** What waits for an answer to that leaf. */
  find(leaf: string): PendingAttempt | undefined
  /** False when nothing waits for it. */
  answer(incoming: Incoming): boolean
  /** Whether an attempt waits that went to that agent. */
  awaits(leaf: string, agentId: string): boolean
  /** Ends an attempt whose answer cannot be verified. */
  distrust(leaf: string, error: HermesError): void
  /** Ends what was sent to that life of an agent, or an earlier one. */
  disconnected(agentId: string, epoch: number, reason: Error): void
  count(agentId: string): number
}

export function createPending(): Pending {
  const byLeaf = new Map<string, PendingAttempt>()
  const byAgent = new Map<string, Set<PendingAttempt>>()
  return {
    add(attempt) {
      byLeaf.set(attempt.leaf, attempt)
      let attempts = byAgent.get(attempt.agentId)
      if (!attempts) {
        attempts = new Set()
        byAgent.set(attempt.agentId, attempts)
      }
      attempts.add(attempt)
    },
    remove(attempt) {
      byLeaf.delete(attempt.leaf)
      const attempts = byAgent.get(attempt.agentId)
      attempts?.delete(attempt)
      if (attempts?.size === 0) byAgent.delete(attempt.agentId)
    },
    find: (leaf) => byLeaf.get(leaf),
    answer(incoming) {
      const attempt = byLeaf.get(incoming.header.in_reply_to ?? '')
      if (!attempt || attempt.agentId !== incoming.link.remote.agentId) return false
      const { message_type: type } = incoming.header
      if (type !== 'error' && type !== (attempt.takes ?? 'response')) return false
      attempt.answered(incoming)
      return true
    },
    awaits: (leaf, agentId) => byLeaf.get(leaf)?.agentId === agentId,
    distrust: (leaf, error) => byLeaf.get(leaf)?.distrusted(error),
    disconnected(agentId, epoch, reason) {
      for (const attempt of [...(byAgent.get(agentId) ?? [])]) if (attempt.epoch <= epoch) attempt.lost(reason)
    },
    count: (agentId) => byAgent.get(agentId)?.size ?? 0,
  }
}
