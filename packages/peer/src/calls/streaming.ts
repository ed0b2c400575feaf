import type { HermesError } from '@hermes-peer/protocol'
import type { Link } from '../link/link.ts'
import type { Network } from '../network/network.ts'
import { createStreams, type Streams, type StreamsOptions } from '../streams/streams.ts'
import { createLarge, type Large } from './large.ts'
import { createSlots } from './slots.ts'
import { createStreamCaller, type StreamAttempt } from './stream-caller.ts'
import { createStreamServer, type StreamServerOptions } from './stream-server.ts'

export interface StreamingOptions extends StreamServerOptions, Omit<StreamsOptions, 'opened'> {
  readonly network: Network
}

/** Everything of a peer that goes over streams, put together. */
export interface Streaming {
  readonly attempt: StreamAttempt
  readonly large: Large
  count(agentId: string): number
  /** As `Streams.written`. */
  written(): Promise<void>
  start(): void
  /** A link is gone, and it was the last one to that life of its agent. */
  lost(link: Link, reason: HermesError): void
  cut: Streams['cut']
  uses: Streams['uses']
  stop(reason: HermesError): void
}

export function createStreaming(options: StreamingOptions): Streaming {
  const { tunables, clock } = options
  const server = createStreamServer(options)
  const streams: Streams = createStreams({ ...options, opened: (opened) => server.opened(opened) })
  const slots = createSlots({
    perNode: tunables.streamsPerNode,
    mostWaiting: tunables.outboxPerPeer,
    clock,
    ageMs: tunables.priorityAgeMs,
  })
  return {
    attempt: createStreamCaller({ ...options, streams, slots }),
    large: createLarge({ ...options, streams, slots }),
    count: (agentId) => streams.count(agentId),
    written: () => streams.written(),
    start: () => streams.start(),
    lost: ({ remote }, reason) => streams.lost(remote.agentId, remote.epoch, reason),
    cut: (test) => streams.cut(test),
    uses: (instance) => streams.uses(instance),
    stop: (reason) => streams.stop(reason),
  }
}
