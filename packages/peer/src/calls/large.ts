import { encodePayload, HermesError, LIMITS, newSpanId } from '@hermes-peer/protocol'
import type { Tunables } from '../defaults.ts'
import type { Draft, Outbox, Posted } from '../delivery/outbox.ts'
import type { Link } from '../link/link.ts'
import type { Random } from '../random.ts'
import { sendPayload } from '../streams/payload.ts'
import type { Stream } from '../streams/stream.ts'
import type { Streams } from '../streams/streams.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { progressOf } from './progress.ts'

export interface LargeOptions {
  readonly streams: Streams
  readonly outbox: Outbox
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
}

export interface LargeEnds {
  written(posted: Posted): void
  failed(error: HermesError): void
  /** The payload did not arrive whole, after `written`. */
  broken(error: HermesError): void
}

/** Sends envelopes whose payload no envelope holds: over a stream of their own, in chunks. */
export interface Large {
  /** Whether that draft has to go this way. */
  needed(link: Link, draft: Draft): boolean
  /** As `Outbox.post`; the returned function gives it up. */
  post(link: Link, draft: Draft, ends: LargeEnds): () => void
  /** Sends an answer; `arrived` is called once its reader has closed the stream. */
  answer(link: Link, draft: Draft, arrived: () => void): void
}

export function createLarge({ streams, outbox, random, tunables, telemetry }: LargeOptions): Large {
  const send = async (stream: Stream, draft: Draft): Promise<void> => {
    const { payload, messageId, correlationId, traceId, contentType } = draft
    const header = {
      message_id: messageId,
      correlation_id: correlationId,
      trace_id: traceId,
      payload_size: payload.length,
    }
    const { agentId } = stream.link.remote
    await sendPayload(
      stream,
      payload,
      (end) =>
        outbox.seal(stream.link, {
          type: 'end',
          payload: encodePayload(contentType ?? 'application/json', end),
          messageId,
          correlationId,
          traceId,
          spanId: newSpanId((length) => random.bytes(length)),
          contentType,
          timeoutMs: draft.timeoutMs,
          inReplyTo: stream.leaf,
        }).frame,
      { progress: progressOf({ telemetry, tunables, header, agentId, direction: 'out' }) },
    )
  }
  return {
    needed: (link, draft) => draft.payload.length <= LIMITS.payload && outbox.isLarge(link, draft),
    post(link, draft, ends) {
      const stop = new AbortController()
      const run = async (): Promise<void> => {
        let stream: Stream
        try {
          ;({ stream } = await streams.open(link, draft, stop.signal))
        } catch (error) {
          ends.failed(HermesError.from(error))
          return
        }
        stop.signal.addEventListener('abort', () => stream.abort(CANCELLED), { once: true })
        ends.written({ leaf: stream.leaf, bytes: draft.payload.length })
        await send(stream, draft).catch((error: unknown) => ends.broken(HermesError.from(error)))
      }
      void run()
      return () => stop.abort(CANCELLED)
    },
    answer(link, draft, arrived) {
      streams
        .open(link, draft, new AbortController().signal)
        .then(({ stream }) => send(stream, draft))
        // Without a stream nothing is sent: the caller asks what became of it, and learns that the result is gone.
        .then(arrived, (cause: unknown) => telemetry.emit('listener.failed', { where: 'answer', cause }))
    },
  }
}

const CANCELLED = new HermesError('CANCELLED', { message: 'the caller gave the call up' })
