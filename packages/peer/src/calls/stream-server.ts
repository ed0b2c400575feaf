import { HermesError, isReservedName, toWireError } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Dedup } from '../delivery/dedup.ts'
import type { Inbox, Incoming } from '../delivery/inbox.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Random } from '../random.ts'
import { collectPayload } from '../streams/payload.ts'
import type { Stream } from '../streams/stream.ts'
import type { OpenedStream } from '../streams/streams.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Pending } from './pending.ts'
import { progressOf } from './progress.ts'
import type { Server } from './server.ts'
import { createStreamSink, endSealer } from './stream-sink.ts'

export interface StreamServerOptions {
  readonly server: Server
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly dedup: Dedup
  readonly pending: Pending
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
}

/** Takes what others open streams for: streaming calls, and requests and answers whose payload travels apart. */
export interface StreamServer {
  opened(opened: OpenedStream): void
}

export function createStreamServer(options: StreamServerOptions): StreamServer {
  const { server, inbox, outbox, dedup, pending, clock, random, tunables, telemetry } = options
  /** Bytes of payloads that are being received, as their headers tell, by agent and in all. */
  const reserved = new Map<string, number>()
  let reservedBytes = 0

  const reserve = (agentId: string, bytes: number): (() => void) => {
    const own = reserved.get(agentId) ?? 0
    if (own + bytes > tunables.payloadBytesPerPeer || reservedBytes + bytes > tunables.payloadBytesPerNode) {
      throw new HermesError('BUSY', {
        message: `${own} bytes of payloads from ${agentId} are on their way already`,
        retryAfterMs: 1000,
      })
    }
    reserved.set(agentId, own + bytes)
    reservedBytes += bytes
    return () => {
      const left = (reserved.get(agentId) ?? 0) - bytes
      if (left > 0) reserved.set(agentId, left)
      else reserved.delete(agentId)
      reservedBytes -= bytes
    }
  }

  /** The same envelope with its whole payload, which has so long to come. */
  const whole = async (
    stream: Stream,
    incoming: Incoming,
    withinMs = Math.min(incoming.budgetMs, tunables.streamTimeoutMs),
    wanted = () => true,
  ): Promise<Incoming> => {
    const { header, from, receivedAt } = incoming
    const release = reserve(from, header.payload_size)
    stream.expect({ alsoWrites: header.call_type === 'stream' })
    const timer = clock.after(receivedAt + withinMs - clock.monotonic(), () =>
      stream.abort(new HermesError('TIMEOUT', { message: `the payload did not come whole within ${withinMs} ms` })),
    )
    try {
      const progress = progressOf({ telemetry, tunables, header, agentId: from, direction: 'in' })
      const payload = await collectPayload(stream, incoming, { inbox, clock, tunables, progress, wanted })
      return { ...incoming, payload }
    } finally {
      clock.clear(timer)
      release()
    }
  }

  const refuseStream = (stream: Stream, incoming: Incoming, error: HermesError): void => {
    const { count, hash } = stream.out.chain
    const failed = { status: 'failed', count, running_hash: hash, error: toWireError(error) as never } as const
    telemetry.emit('envelope.refused', {
      code: error.code,
      reason: error.message,
      from: incoming.from,
      messageId: incoming.header.message_id,
      messageType: incoming.header.message_type,
    })
    stream.end(endSealer({ stream, incoming, outbox, random })(failed)).catch(() => undefined)
  }

  const serve = async ({ stream, opening }: OpenedStream): Promise<void> => {
    let { incoming } = opening
    try {
      if (opening.refusal) throw opening.refusal
      const { header, from } = incoming
      if (isReservedName(header.target_capability as string)) throw new HermesError('STREAM_UNSUPPORTED')
      const known = dedup.find(from, header.message_id)
      if (known?.state === 'refused') {
        throw new HermesError('STALE_SEQUENCE', { message: `${header.message_id} was withdrawn before it came` })
      }
      if (known) throw new HermesError('STREAM_BROKEN', { message: 'a stream is neither joined nor replayed' })
      server.mayStart(incoming, true)
      if (opening.apart) incoming = await whole(stream, incoming)
      if (dedup.find(from, header.message_id)) throw new HermesError('STREAM_BROKEN', { message: 'opened twice' })
      const sink = createStreamSink({ stream, incoming, outbox, clock, random, tunables })
      sink.bind(server.stream(incoming, sink))
    } catch (error) {
      refuseStream(stream, incoming, HermesError.from(error))
    }
  }

  const request = async ({ stream, opening }: OpenedStream): Promise<void> => {
    const { incoming } = opening
    const { header, from } = incoming
    try {
      if (opening.refusal) throw opening.refusal
      const name = header.target_capability as string
      if (isReservedName(name)) throw new HermesError('PAYLOAD_TOO_LARGE', { message: `${name} takes no such input` })
      if (!dedup.find(from, header.message_id)) server.mayStart(incoming, false)
      const complete = await whole(stream, incoming)
      stream.close()
      // Another attempt of the same work may have come meanwhile.
      const record = dedup.find(from, header.message_id)
      if (record) server.duplicate(complete, record)
      else server.admitted(complete)
    } catch (thrown) {
      const error = HermesError.from(thrown)
      stream.abort(error)
      server.refused(incoming, error)
    }
  }

  const answer = async ({ stream, opening }: OpenedStream): Promise<void> => {
    const { incoming } = opening
    const { header, from } = incoming
    const leaf = header.in_reply_to ?? ''
    const attempt = () => {
      const found = pending.find(leaf)
      return found?.agentId === from ? found : undefined
    }
    if (opening.refusal || !attempt()) {
      telemetry.emit('answer.late', { from, inReplyTo: leaf })
      stream.abort(opening.refusal ?? new HermesError('CANCELLED', { message: 'nobody waits for this answer' }))
      return
    }
    try {
      const complete = await whole(stream, incoming, tunables.streamTimeoutMs, () => attempt() !== undefined)
      stream.close()
      if (!pending.answer(complete)) telemetry.emit('answer.late', { from, inReplyTo: leaf })
    } catch (thrown) {
      const error = HermesError.from(thrown)
      stream.abort(error)
      // Only the stream is broken, not the link: whether the work may be asked for again is for the call to say.
      attempt()?.lost(
        new HermesError('STREAM_BROKEN', { message: `the answer of ${from} did not come whole`, cause: error }),
      )
    }
  }

  return {
    opened(opened) {
      const { header } = opened.opening.incoming
      if (header.message_type === 'request') void (header.call_type === 'stream' ? serve(opened) : request(opened))
      else if (header.message_type === 'response') void answer(opened)
      else {
        opened.stream.abort(
          new HermesError('PAYLOAD_TOO_LARGE', {
            message: `the payload of a ${header.message_type} does not travel apart`,
          }),
        )
      }
    },
  }
}
