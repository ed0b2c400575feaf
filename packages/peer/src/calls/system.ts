import { encodePayload, HermesError, newMessageId, newSpanId, newTraceId } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Link } from '../link/link.ts'
import type { Random } from '../random.ts'
import { onAbort } from '../signals.ts'
import { readReply } from './answer.ts'
import type { Pending, PendingAttempt } from './pending.ts'

/** Calls what every peer offers (`hermes.*`): one attempt over a given link, no queue, no failover. */
export type AskRuntime = (
  link: Link,
  capability: string,
  input: unknown,
  options: {
    timeoutMs: number
    signal?: AbortSignal | undefined
    traceId?: string
    sessionId?: string
    /** As `Draft.maxHops`. */
    maxHops?: number
    /** Told who made the answer: along hops that may be another agent than the one at the other end of the link. */
    answeredBy?: (agentId: string) => void
  },
) => Promise<unknown>

export function createAskRuntime(options: {
  outbox: Outbox
  pending: Pending
  clock: Clock
  random: Random
}): AskRuntime {
  const { outbox, pending, clock, random } = options
  const bytes = (length: number) => random.bytes(length)
  return (link, capability, input, { timeoutMs, signal, traceId, sessionId, maxHops, answeredBy }) =>
    new Promise((resolve, reject) => {
      let attempt: PendingAttempt | undefined
      let ended = false
      const end = (finish: () => void): void => {
        ended = true
        clock.clear(timer)
        release()
        if (attempt) pending.remove(attempt)
        takeBack()
        finish()
      }
      const aborted = () => end(() => reject(HermesError.from(signal?.reason, 'CANCELLED')))
      const timer = clock.after(timeoutMs, () =>
        end(() =>
          reject(
            new HermesError('TIMEOUT', {
              message: `${link.remote.agentId} did not answer ${capability} within ${timeoutMs} ms`,
            }),
          ),
        ),
      )
      let release = (): void => undefined
      let takeBack = (): void => undefined
      takeBack = outbox.post(
        link,
        {
          type: 'request',
          payload: encodePayload('application/json', { input } as never),
          messageId: newMessageId(bytes),
          traceId: traceId ?? newTraceId(bytes),
          spanId: newSpanId(bytes),
          capability,
          timeoutMs,
          priority: 5,
          sessionId,
          maxHops,
          // Housekeeping must not wait behind a gap in the work.
          ordered: false,
        },
        {
          written: ({ leaf }) => {
            attempt = {
              leaf,
              agentId: link.remote.agentId,
              epoch: link.remote.epoch,
              lost: (reason) => end(() => reject(HermesError.from(reason, 'PEER_UNREACHABLE'))),
              distrusted: (error) => end(() => reject(error)),
              answered: (incoming) =>
                end(() => {
                  try {
                    const reply = readReply(incoming)
                    answeredBy?.(incoming.from)
                    if (reply.kind === 'error') reject(reply.error)
                    else resolve(reply.response.output)
                  } catch (error) {
                    reject(HermesError.from(error))
                  }
                }),
            }
            pending.add(attempt)
          },
          failed: (error) => end(() => reject(error)),
        },
      )
      if (signal && !ended) release = onAbort(signal, aborted)
    })
}
