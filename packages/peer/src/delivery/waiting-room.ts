import { HermesError } from '@hermes-peer/protocol'
import type { Tunables } from '../defaults.ts'
import type { Link } from '../link/link.ts'
import type { Links } from '../link/links.ts'

/** What waits until a link takes more. */
export interface Waiting {
  readonly priority: number
  /** Answers are bounded by the work that they end, and may go over any link of that agent. */
  readonly answer: boolean
  /** Of its payload or frame. */
  readonly bytes: number
  write(link: Link): void
  failed(error: HermesError): void
}

/** Holds back what links do not take, most urgent first. */
export interface WaitingRoom {
  /** Writes it, or lets it wait its turn; the returned function takes it back while it waits. */
  add(link: Link, entry: Waiting): () => void
  /** Over another link to the same life, if there is one. */
  elsewhere(link: Link, entry: Waiting): void
  unblocked(link: Link): void
  /** Another link of that agent has taken over: what waits goes there. */
  retired(link: Link): void
  /** The link has ended: what waits fails, and answers go over another link. */
  lost(link: Link, error: HermesError): void
  /** Hands answers to their links, blocked or not, before these are closed. */
  flush(): void
}

export function createWaitingRoom({ links, tunables }: { links: Links; tunables: Tunables }): WaitingRoom {
  const queues = new Map<Link, Waiting[]>()
  /** Bytes of the answers in each of them. */
  const answerBytes = new Map<Link, number>()
  const weigh = (link: Link, { answer, bytes }: Waiting, times: 1 | -1): void => {
    if (answer) answerBytes.set(link, (answerBytes.get(link) ?? 0) + times * bytes)
  }

  const add = (link: Link, entry: Waiting): (() => void) => {
    const { agentId } = link.remote
    if (link.state === 'closed') {
      entry.failed(new HermesError('PEER_UNREACHABLE', { message: `the link to ${agentId} has been closed` }))
      return () => undefined
    }
    const queue = queues.get(link)
    if (!link.blocked && !queue) {
      entry.write(link)
      return () => undefined
    }
    const waiting = queue ?? []
    const full = entry.answer
      ? waiting.length >= tunables.answersWaiting ||
        (answerBytes.get(link) ?? 0) + entry.bytes > tunables.answerBytesWaiting
      : waiting.length >= tunables.outboxPerPeer
    if (full) {
      entry.failed(
        new HermesError('QUEUE_FULL', { message: `${waiting.length} messages wait to be sent to ${agentId}` }),
      )
      // More than the answers to all that it may ask: it goes on asking and reads nothing.
      if (entry.answer) {
        link.destroy(new HermesError('PEER_UNREACHABLE', { message: `${agentId} does not read what it is answered` }))
      }
      return () => undefined
    }
    let at = waiting.length
    while (at > 0 && (waiting[at - 1] as Waiting).priority < entry.priority) at--
    waiting.splice(at, 0, entry)
    queues.set(link, waiting)
    weigh(link, entry, 1)
    return () => {
      for (const [over, left] of queues) {
        const place = left.indexOf(entry)
        if (place < 0) continue
        left.splice(place, 1)
        weigh(over, entry, -1)
      }
    }
  }

  const otherThan = (link: Link): Link | undefined => {
    const other = links.get(link.remote.agentId)
    return other !== link && other?.remote.epoch === link.remote.epoch ? other : undefined
  }
  const elsewhere = (link: Link, entry: Waiting): void => {
    const other = otherThan(link)
    if (other) add(other, entry)
  }
  const leave = (link: Link): Waiting[] => {
    const waiting = queues.get(link) ?? []
    queues.delete(link)
    answerBytes.delete(link)
    return waiting
  }

  return {
    add,
    elsewhere,
    unblocked(link) {
      const waiting = queues.get(link)
      if (!waiting) return
      while (waiting.length > 0 && !link.blocked) {
        const entry = waiting.shift() as Waiting
        weigh(link, entry, -1)
        entry.write(link)
      }
      if (waiting.length === 0 && queues.get(link) === waiting) leave(link)
    },
    retired(link) {
      const other = otherThan(link)
      if (other) for (const entry of leave(link)) add(other, entry)
    },
    lost(link, error) {
      for (const entry of leave(link)) {
        if (entry.answer) elsewhere(link, entry)
        else entry.failed(error)
      }
    },
    flush() {
      for (const [link, waiting] of [...queues]) {
        let bytes = 0
        for (const entry of waiting.filter(({ answer }) => answer)) {
          bytes += entry.bytes
          if (bytes > tunables.lastWordsBytes) break
          waiting.splice(waiting.indexOf(entry), 1)
          weigh(link, entry, -1)
          entry.write(link)
        }
      }
    },
  }
}
