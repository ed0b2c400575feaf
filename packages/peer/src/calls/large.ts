import { encodePayload, HermesError, LIMITS, newSpanId } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Draft, Outbox, Posted } from '../delivery/outbox.ts'
import type { Link } from '../link/link.ts'
import type { Random } from '../random.ts'
import { sendPayload } from '../streams/payload.ts'
import type { Stream } from '../streams/stream.ts'
import type { Streams } from '../streams/streams.ts'
import type { Telemetry } from '../telemetry/events.ts'
import { progressOf } from './progress.ts'
import { placeAt, type Slots } from './slots.ts'

export interface LargeOptions {
  readonly streams: Streams
  readonly outbox: Outbox
  /** Places among the streams with an agent. */
  readonly slots: Slots
  readonly clock: Clock
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
  /** Sends an answer over the link there is, once there is room among the streams with that agent, within the life of the answer. */
  answer(agentId: string, link: () => Link | undefined, draft: Draft, ends: AnswerEnds): void
}

export interface AnswerEnds {
  /** Its reader has closed the stream. */
  arrived(): void
  /** Nothing of it was sent, though there is a link. */
  failed(error: HermesError): void
}

export function createLarge({ streams, outbox, slots, clock, random, tunables, telemetry }: LargeOptions): Large {
  const place = (agentId: string, { priority = 3 }: Draft, until: AbortController): Promise<() => void> =>
    placeAt(slots, { agentId, most: tunables.streamsPerPeer, priority }, until)

  /** The same over the link there is, whichever that comes to be; undefined when there is none. */
  const openNow = async (
    linkNow: () => Link | undefined,
    draft: Draft,
    signal: AbortSignal,
  ): Promise<Stream | undefined> => {
    for (let link = linkNow(); link; link = linkNow()) {
      try {
        return await open(link, draft, signal)
      } catch (error) {
        if (link.state !== 'closed' || signal.aborted) throw error
      }
    }
    return undefined
  }

  /** A stream, as soon as the bound of streams allows; those that the other side has open count as well. */
  const open = async (link: Link, draft: Draft, signal: AbortSignal): Promise<Stream> => {
    for (;;) {
      try {
        return (await streams.open(link, draft, signal)).stream
      } catch (thrown) {
        const error = HermesError.from(thrown)
        if (error.code !== 'BUSY' || signal.aborted) throw error
        await new Promise<void>((resolve) => clock.after(error.retryAfterMs ?? tunables.callerGraceMs, resolve))
        if (signal.aborted) throw error
      }
    }
  }

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
        let release = (): void => undefined
        try {
          release = await place(link.remote.agentId, draft, stop)
          ;({ stream } = await streams.open(link, draft, stop.signal))
        } catch (error) {
          release()
          ends.failed(HermesError.from(error))
          return
        }
        stop.signal.addEventListener('abort', () => stream.abort(CANCELLED), { once: true })
        ends.written({ leaf: stream.leaf, bytes: draft.payload.length })
        await send(stream, draft).catch((error: unknown) => ends.broken(HermesError.from(error)))
        release()
      }
      void run()
      return () => stop.abort(CANCELLED)
    },
    answer(agentId, linkNow, draft, ends) {
      const life = new AbortController()
      const timer = clock.after(draft.timeoutMs, () =>
        life.abort(new HermesError('BUSY', { message: `no stream was free within ${draft.timeoutMs} ms` })),
      )
      const run = async (): Promise<void> => {
        let release = (): void => undefined
        try {
          release = await place(agentId, draft, life)
          const stream = await openNow(linkNow, draft, life.signal)
          // Its reader asks for it when it is back.
          if (!stream) return
          clock.clear(timer)
          // What breaks from here on breaks at the other end too.
          await send(stream, draft).then(ends.arrived, (cause: unknown) =>
            telemetry.emit('listener.failed', { where: 'answer', cause }),
          )
        } catch (error) {
          telemetry.emit('listener.failed', { where: 'answer', cause: error })
          ends.failed(HermesError.from(error))
        } finally {
          clock.clear(timer)
          release()
        }
      }
      void run()
    },
  }
}

const CANCELLED = new HermesError('CANCELLED', { message: 'the caller gave the call up' })
