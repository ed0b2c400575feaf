import { decodePayload, HermesError, type JsonValue, readRequestPayload } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Dedup } from '../delivery/dedup.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Directory } from '../directory/directory.ts'
import type { Link } from '../link/link.ts'
import type { HopSender } from './hop-sender.ts'

/** Where tasks are that were handed on from here. */
export interface HandedTasks {
  /** Whether there are any. */
  readonly some: boolean
  /**
   * The agent that is to be asked about that task of that owner; undefined when this one is. Rejects with `PEER_UNREACHABLE` when
   * that cannot be told now.
   */
  holder(owner: string, taskId: string, question: string): string | Promise<string | undefined> | undefined
  /** News of it passed here, on their way to the owner. */
  passed(owner: string, taskId: string, news: JsonValue): void
}

export interface PassOnOptions {
  readonly dedup: Dedup
  readonly hops: HopSender
  readonly directory: Pick<Directory, 'reach'>
  readonly clock: Clock
  readonly tunables: Tunables
  readonly handedTasks: HandedTasks
  /** The link to the life that has work which was handed on. */
  linkTo(next: { readonly agentId: string; readonly epoch: number }): Link | undefined
  /** Throws `TTL_EXPIRED`. */
  hopLeft(incoming: Incoming): void
}

/**
 * Passes a question about work on to who has that work. Undefined: it is asked of this agent. Resolves with false when this agent
 * is the one to answer after all, and rejects with what the asker is to be told.
 */
export type PassOn = (incoming: Incoming, name: string) => Promise<boolean> | undefined

export function createPassOn(options: PassOnOptions): PassOn {
  const { dedup, hops, directory, clock, tunables, handedTasks, linkTo, hopLeft } = options

  /** Who asks has a few seconds: a link that does not come back at once is none. */
  const reach = async (agentId: string): Promise<Link> => {
    const stop = new AbortController()
    const timer = clock.after(tunables.dialTimeoutMs, () => stop.abort())
    try {
      return await directory.reach(agentId, stop.signal)
    } catch (cause) {
      throw new HermesError('PEER_UNREACHABLE', {
        message: `${agentId}, to whom it was handed on, cannot be reached`,
        details: { agent: agentId },
        cause,
      })
    } finally {
      clock.clear(timer)
    }
  }

  const leftOf = ({ budgetMs, receivedAt }: Incoming): number => budgetMs - (clock.monotonic() - receivedAt)

  const inputOf = ({ header, payload }: Incoming): Readonly<Record<string, unknown>> => {
    try {
      const { input } = readRequestPayload(decodePayload(header.content_type, payload))
      return (input ?? {}) as Readonly<Record<string, unknown>>
    } catch {
      return {}
    }
  }

  const ofCall = (incoming: Incoming): Promise<boolean> | undefined => {
    const { message_id: id } = inputOf(incoming)
    const record = typeof id === 'string' ? dedup.find(incoming.from, id) : undefined
    const next = record?.next
    if (record?.state !== 'forwarded' || !next) return undefined
    const run = async (): Promise<boolean> => {
      hopLeft(incoming)
      const link = linkTo(next) ?? (await reach(next.agentId))
      if (link.remote.epoch !== next.epoch || incoming.link.state === 'closed') return false
      const budgetMs = Math.min(leftOf(incoming), tunables.outcomeTimeoutMs)
      hops.send(incoming, link, { back: incoming.link, budgetMs })
      return true
    }
    return run().catch(() => false)
  }

  const ofTask = (incoming: Incoming, name: string): Promise<boolean> | undefined => {
    if (!handedTasks.some) return undefined
    const { task_id: taskId } = inputOf(incoming)
    // Whose task it is was proven by who signed the question: nobody is passed on about a task of somebody else.
    const holder = typeof taskId === 'string' ? handedTasks.holder(incoming.from, taskId, name) : undefined
    if (holder === undefined) return undefined
    const run = async (): Promise<boolean> => {
      const agentId = await holder
      if (agentId === undefined) return false
      hopLeft(incoming)
      const link = await reach(agentId)
      if (incoming.link.state !== 'closed') {
        hops.send(incoming, link, { back: incoming.link, budgetMs: leftOf(incoming), taskId: taskId as string })
      }
      return true
    }
    return run()
  }

  return (incoming, name) => {
    if (name === 'hermes.outcome') return ofCall(incoming)
    return name.startsWith('hermes.task.') ? ofTask(incoming, name) : undefined
  }
}
