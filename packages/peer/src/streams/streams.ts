import { encodeAbort, HermesError, MAX_SINGLE_FRAME, STREAM_PROTOCOL } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Inbox, Opening } from '../delivery/inbox.ts'
import type { Draft, Outbox } from '../delivery/outbox.ts'
import type { OwnInstance } from '../identity/own-instance.ts'
import { ByteQueue } from '../link/byte-queue.ts'
import type { Link } from '../link/link.ts'
import type { Links } from '../link/links.ts'
import type { Channel, Network } from '../network/network.ts'
import { onAbort } from '../signals.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { createStream, type DrivenStream, type Stream } from './stream.ts'

/** A stream that another peer has opened. */
export interface OpenedStream {
  readonly stream: Stream
  readonly opening: Opening
}

/** All streams of a peer: each belongs to an agent that has a link, and ends with its last one. */
export interface Streams {
  /** Takes part in accepting streams from now on. */
  start(): void
  /**
   * Opens one with the given envelope; `apart` tells that its payload is to follow in chunks. Rejects with `PEER_UNREACHABLE`,
   * `BUSY` at the bound of streams, or the signal's reason: nothing was sent then.
   */
  open(link: Link, draft: Draft, signal: AbortSignal): Promise<{ stream: Stream; apart: boolean }>
  /** Streams with that agent, either side's. */
  count(agentId: string): number
  /** Resolves once no stream is open that this side writes to; at once when there is none. */
  written(): Promise<void>
  /** The last link to that life of an agent, or an earlier one, is gone. */
  lost(agentId: string, epoch: number, reason: HermesError): void
  /** Aborts those whose link the test gives a reason for. */
  cut(test: (link: Link) => HermesError | undefined): void
  /** Whether one goes over that instance of ours. */
  uses(instance: OwnInstance): boolean
  stop(reason: HermesError): void
}

export interface StreamsOptions {
  readonly network: Network
  /** Our instance that a channel belongs to. */
  readonly own: (channel: Channel) => OwnInstance
  readonly links: Links
  readonly outbox: Outbox
  readonly inbox: Inbox
  readonly clock: Clock
  readonly tunables: Tunables
  readonly telemetry: Telemetry
  opened(opened: OpenedStream): void
}

export function createStreams(options: StreamsOptions): Streams {
  return new StreamTable(options)
}

class StreamTable implements Streams {
  readonly #options: StreamsOptions
  /** Bounded by `streamsPerPeer` and `streamsPerNode`. */
  readonly #byAgent = new Map<string, Set<Stream>>()
  /** Channels whose opening has not come; each gives its place back within `streamOpenMs`. */
  readonly #opening = new Map<string, number>()
  #open = 0
  /** Bounded: the one drain of a stop. */
  readonly #waiting: (() => void)[] = []
  #stopped: HermesError | undefined

  constructor(options: StreamsOptions) {
    this.#options = options
  }

  count(agentId: string): number {
    return this.#byAgent.get(agentId)?.size ?? 0
  }

  start(): void {
    this.#options.network.handle(STREAM_PROTOCOL, (channel) => this.#accept(channel))
  }

  written(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#writes()) this.#waiting.push(resolve)
      else resolve()
    })
  }

  #writes(): boolean {
    for (const streams of this.#byAgent.values()) for (const { writes } of streams) if (writes) return true
    return false
  }

  lost(agentId: string, epoch: number, reason: HermesError): void {
    for (const stream of [...(this.#byAgent.get(agentId) ?? [])]) {
      if (stream.link.remote.epoch <= epoch) stream.abort(reason)
    }
  }

  cut(test: (link: Link) => HermesError | undefined): void {
    for (const stream of [...this.#byAgent.values()].flatMap((streams) => [...streams])) {
      const reason = test(stream.link)
      if (reason) stream.abort(reason)
    }
  }

  uses(instance: OwnInstance): boolean {
    for (const streams of this.#byAgent.values()) for (const { link } of streams) if (link.own === instance) return true
    return false
  }

  stop(reason: HermesError): void {
    this.#stopped = reason
    for (const agentId of [...this.#byAgent.keys()]) this.lost(agentId, Number.POSITIVE_INFINITY, reason)
  }

  async open(link: Link, draft: Draft, signal: AbortSignal): Promise<{ stream: Stream; apart: boolean }> {
    const { network, outbox, clock, tunables } = this.#options
    const { agentId, peerId } = link.remote
    if (this.#stopped) throw this.#stopped
    this.#checkRoom(agentId, 1)
    const leave = this.#enter(agentId)
    let channel: Channel
    const stop = new AbortController()
    const timer = clock.after(tunables.dialTimeoutMs, () =>
      stop.abort(new HermesError('PEER_UNREACHABLE', { message: `${agentId} takes no stream` })),
    )
    const release = onAbort(signal, () => stop.abort(signal.reason))
    try {
      channel = await network.open({ peerId, addresses: [], from: link.own.peerId }, STREAM_PROTOCOL, {
        signal: stop.signal,
      })
    } catch (error) {
      throw HermesError.from(error, 'PEER_UNREACHABLE')
    } finally {
      clock.clear(timer)
      release()
      leave()
    }
    const reason = this.#stopped ?? (signal.aborted ? HermesError.from(signal.reason, 'CANCELLED') : undefined)
    if (reason || link.state === 'closed') {
      channel.abort(reason ?? new Error('the link is gone'))
      throw reason ?? new HermesError('PEER_UNREACHABLE', { message: `the link to ${agentId} was lost` })
    }
    let sealed: ReturnType<Outbox['seal']>
    try {
      sealed = outbox.seal(link, draft)
    } catch (error) {
      channel.abort(HermesError.from(error))
      throw error
    }
    const driven = this.#drive(channel, link, sealed.leaf, draft)
    channel.listen({
      data: (bytes) => driven.received(bytes),
      drained: () => driven.drained(),
      closed: (error) => driven.closed(error),
    })
    channel.send(sealed.frame)
    return { stream: driven.stream, apart: sealed.apart }
  }

  #accept(channel: Channel): void {
    const { links, inbox, clock, tunables, telemetry, opened } = this.#options
    const queue = new ByteQueue()
    let driven: DrivenStream | undefined
    let over = false
    const link = this.#linkOf(channel)
    const refuse = (error: HermesError, told?: string): void => {
      if (over) return
      over = true
      clock.clear(timer)
      leave()
      telemetry.emit('stream.refused', {
        code: error.code,
        reason: error.message,
        peerId: channel.remotePeer,
        agentId: link?.remote.agentId,
      })
      if (told === undefined) {
        channel.abort(error)
        return
      }
      channel.send(encodeAbort(told))
      void channel.close().catch(() => undefined)
      clock.after(tunables.callerGraceMs, () => channel.abort(error))
    }
    let leave = (): void => undefined
    const timer = clock.after(tunables.streamOpenMs, () =>
      refuse(new HermesError('TIMEOUT', { message: `no opening came within ${tunables.streamOpenMs} ms` })),
    )
    const begin = (body: Uint8Array): void => {
      // The link may have gone, or been replaced, since the channel came.
      const from = this.#linkOf(channel)
      if (this.#stopped || !from) {
        refuse(this.#stopped ?? new HermesError('NOT_ALLOWED', { message: 'a stream of a peer that has no link' }))
        return
      }
      let opening: Opening
      try {
        opening = inbox.receiveOpening(from, body)
      } catch (error) {
        refuse(HermesError.from(error))
        return
      }
      over = true
      clock.clear(timer)
      leave()
      const { header, leaf } = opening.incoming
      driven = this.#drive(channel, from, leaf, {
        messageId: header.message_id,
        correlationId: header.correlation_id,
        traceId: header.trace_id,
      })
      opened({ stream: driven.stream, opening })
      if (queue.size > 0) driven.received(queue.take(queue.size) as Uint8Array)
    }
    channel.listen({
      data: (bytes) => {
        if (driven) {
          driven.received(bytes)
          return
        }
        if (over) return
        queue.push(bytes)
        try {
          const body = queue.part(MAX_SINGLE_FRAME)
          if (body) begin(body)
        } catch (error) {
          refuse(HermesError.from(error, 'MALFORMED'))
        }
      },
      drained: () => driven?.drained(),
      closed: (error) => {
        if (driven) driven.closed(error)
        else refuse(new HermesError('STREAM_BROKEN', { message: 'it ended before its opening envelope was whole' }))
      },
    })
    if (this.#stopped) refuse(this.#stopped)
    else if (!link || !links.has(link.remote.agentId)) {
      refuse(new HermesError('NOT_ALLOWED', { message: 'a stream of a peer that has no link' }))
    } else {
      try {
        // A stream that has ended over there may not have ended here: whoever keeps to the bound is never refused.
        this.#checkRoom(link.remote.agentId, 2)
        leave = this.#enter(link.remote.agentId)
      } catch (error) {
        refuse(HermesError.from(error), 'BUSY')
      }
    }
  }

  #linkOf(channel: Channel): Link | undefined {
    const own = this.#options.own(channel)
    let found: Link | undefined
    for (const link of this.#options.links.all()) {
      if (link.remote.peerId !== channel.remotePeer || link.state === 'closed') continue
      if (link.own === own) return link
      found ??= link
    }
    return found
  }

  #checkRoom(agentId: string, times: number): void {
    const { streamsPerPeer, streamsPerNode } = this.#options.tunables
    const most = times * streamsPerPeer
    const own = this.count(agentId) + (this.#opening.get(agentId) ?? 0)
    if (own < most && this.#open < times * streamsPerNode) return
    throw new HermesError('BUSY', {
      message:
        own >= most
          ? `${own} streams with ${agentId} are open, the limit is ${most}`
          : `${this.#open} streams are open, the limit is ${times * streamsPerNode}`,
      retryAfterMs: 100,
    })
  }

  /** Takes a place for a stream that is being opened; the result gives it back. */
  #enter(agentId: string): () => void {
    this.#opening.set(agentId, (this.#opening.get(agentId) ?? 0) + 1)
    this.#open++
    let left = false
    return () => {
      if (left) return
      left = true
      this.#open--
      const rest = (this.#opening.get(agentId) ?? 1) - 1
      if (rest > 0) this.#opening.set(agentId, rest)
      else this.#opening.delete(agentId)
    }
  }

  #drive(
    channel: Channel,
    link: Link,
    leaf: string,
    { messageId, correlationId, traceId }: Pick<Draft, 'messageId' | 'correlationId' | 'traceId'>,
  ): DrivenStream {
    const { clock, tunables, telemetry } = this.#options
    const { agentId } = link.remote
    const ids = { messageId, correlationId, traceId, agentId, direction: channel.direction }
    const driven = createStream({
      leaf,
      link,
      channel,
      clock,
      tunables,
      flow: (side, paused, waiting) => telemetry.emit('stream.flow', { ...ids, side, paused, waiting }),
    })
    const { stream } = driven
    let own = this.#byAgent.get(agentId)
    if (!own) {
      own = new Set()
      this.#byAgent.set(agentId, own)
    }
    own.add(stream)
    this.#open++
    telemetry.emit('stream.opened', ids)
    stream.onOver((error) => {
      this.#open--
      const left = this.#byAgent.get(agentId)
      left?.delete(stream)
      if (left?.size === 0) this.#byAgent.delete(agentId)
      if (this.#waiting.length > 0 && !this.#writes()) for (const done of this.#waiting.splice(0)) done()
      telemetry.emit('stream.ended', {
        ...ids,
        code: error?.code ?? 'OK',
        sent: stream.out.chain.count,
        received: stream.in.chain.count,
        bytes: stream.out.bytes + stream.in.bytes,
        extra: stream.in.extra,
      })
    })
    return driven
  }
}
