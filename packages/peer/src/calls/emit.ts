import {
  broadcastTopic,
  checkName,
  encodePayload,
  HermesError,
  LIMITS,
  MAX_LIFE_MS,
  newMessageId,
  newSpanId,
  newTraceId,
} from '@hermes-peer/protocol'
import type { EmitOptions, EmitTarget } from '../api.ts'
import { checkTimes } from '../checks.ts'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Draft, Outbox } from '../delivery/outbox.ts'
import type { Directory } from '../directory/directory.ts'
import type { Link } from '../link/link.ts'
import type { Network } from '../network/network.ts'
import type { CallGuard } from '../policy/guard.ts'
import type { Random } from '../random.ts'
import { onAbort, withSignal } from '../signals.ts'
import { served } from './context.ts'
import { checkOwnPolicy } from './own-policy.ts'
import type { Tasks } from './tasks/tasks.ts'

export interface EmitDeps {
  readonly networkName: string
  readonly network: Network
  readonly outbox: Outbox
  readonly directory: Directory
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly tasks: Pick<Tasks, 'emit'>
  readonly policy: CallGuard
}

/** Sends an event to one agent, or to a topic; resolves with the number of peers it was handed to. */
export async function emit(
  deps: EmitDeps,
  target: EmitTarget,
  data: unknown,
  options: EmitOptions,
): Promise<{ peers: number; stored?: boolean }> {
  const { tasks, outbox, network, networkName, directory, clock, random, tunables, policy } = deps
  checkTimes(options)
  const timeoutMs = options.timeoutMs ?? tunables.callTimeoutMs
  if (
    typeof target !== 'object' ||
    target === null ||
    !('topic' in target || ('agent' in target && 'event' in target))
  ) {
    throw new HermesError('INVALID_OPTION', {
      message: 'target must be {agent, event} or {topic}',
      details: { field: 'target' },
    })
  }
  if (options.ack !== undefined && (options.ack !== 'stored' || 'topic' in target)) {
    throw new HermesError('INVALID_OPTION', {
      message: "ack must be 'stored', and only an event to one agent is acknowledged",
      details: { field: 'ack' },
    })
  }
  if ('topic' in target) {
    checkName('topic', target.topic)
    checkOwnPolicy(policy, undefined, `topic:${target.topic}`, { value: data ?? null })
    const { frame } = outbox.broadcast(target.topic, data ?? null, timeoutMs)
    if (frame.length > LIMITS.broadcast) {
      throw new HermesError('PAYLOAD_TOO_LARGE', {
        message: `a broadcast of ${frame.length} bytes, the limit is ${LIMITS.broadcast}`,
        details: { size: frame.length, limit: LIMITS.broadcast },
      })
    }
    return { peers: await network.publish(broadcastTopic(networkName, target.topic), frame) }
  }
  checkName('agent_id', target.agent, 'agent')
  checkName('capability', target.event, 'event')
  checkOwnPolicy(policy, target.agent, `event:${target.event}`, { value: data ?? null })
  const bytes = (length: number) => random.bytes(length)
  const context = served.getStore()
  const draft: Draft = {
    type: 'event',
    payload: encodePayload('application/json', { data: (data ?? null) as never }),
    messageId: newMessageId(bytes),
    correlationId: context?.correlationId || undefined,
    traceId: context?.traceId ?? newTraceId(bytes),
    spanId: newSpanId(bytes),
    capability: target.event,
    timeoutMs,
  }
  const stop = new AbortController()
  const limit = clock.after(timeoutMs, () => stop.abort(new HermesError('TIMEOUT')))
  const releases = options.signal ? [onAbort(options.signal, () => stop.abort(options.signal?.reason))] : []
  try {
    if (options.ack === 'stored') {
      const { payload, messageId, correlationId, traceId } = draft
      const stored = await tasks.emit(
        {
          agentId: target.agent,
          messageId,
          type: 'event',
          capability: target.event,
          payload,
          correlationId,
          traceId,
          priority: 3,
          path: [],
          timeoutMs,
          expiresAt: clock.now() + MAX_LIFE_MS - tunables.maxClockOffsetMs,
        },
        stop.signal,
      )
      return { peers: stored ? 1 : 0, stored }
    }
    const link = await withSignal(directory.reach(target.agent, stop.signal), options.signal)
    await written(outbox, link, draft, [stop.signal, ...(options.signal ? [options.signal] : [])])
  } finally {
    for (const release of releases) release()
    clock.clear(limit)
  }
  return { peers: 1 }
}

/** Resolves once it has been written; what still waits for room in the link is taken back when a signal fires. */
function written(outbox: Outbox, link: Link, draft: Draft, signals: readonly AbortSignal[]): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const releases: (() => void)[] = []
    let ended = false
    const end = (finish: () => void): void => {
      ended = true
      for (const release of releases) release()
      finish()
    }
    const takeBack = outbox.post(link, draft, {
      written: () => end(resolve),
      failed: (error) => end(() => reject(error)),
    })
    for (const signal of signals) {
      if (ended) return
      releases.push(
        onAbort(signal, () => {
          takeBack()
          end(() => reject(HermesError.from(signal.reason, 'CANCELLED')))
        }),
      )
    }
  })
}
