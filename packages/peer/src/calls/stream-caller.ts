import { encodePayload, fromWireError, HermesError, newSpanId } from '@hermes-peer/protocol'
import type { Clock } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Inbox } from '../delivery/inbox.ts'
import type { Draft, Outbox } from '../delivery/outbox.ts'
import type { Link } from '../link/link.ts'
import type { Random } from '../random.ts'
import { interruptible } from '../signals.ts'
import type { Piece } from '../streams/inflow.ts'
import { nextWithin, readEnd, sendPayload } from '../streams/payload.ts'
import type { Stream } from '../streams/stream.ts'
import type { Streams } from '../streams/streams.ts'
import type { Telemetry } from '../telemetry/events.ts'
import type { Attempt, CallState, Ending } from './call.ts'
import { notStarted } from './call.ts'
import { progressOf } from './progress.ts'
import { placeAt, type Slots } from './slots.ts'

/** Whoever reads the pieces of a streaming call. */
export interface PieceReader {
  /** Resolves when the next piece is wanted. */
  wanted(): Promise<void>
  /** Takes it; throws when it is not what the contract says. */
  take(bytes: Uint8Array): void | Promise<void>
}

export interface StreamCallerOptions {
  readonly streams: Streams
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly slots: Slots
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly telemetry: Telemetry
}

/** Carries one attempt of a streaming call out, over a stream of its own. */
export type StreamAttempt = (
  state: CallState,
  link: Link,
  reader: PieceReader,
) => Promise<{ ending: Ending; attempt: undefined }>

export function createStreamCaller(options: StreamCallerOptions): StreamAttempt {
  const { streams, inbox, outbox, slots, clock, random, tunables, telemetry } = options

  /** A place among the streams with that agent; waits in line for it. */
  const place = (state: CallState, agentId: string): Promise<() => void> =>
    placeAt(slots, { agentId, most: tunables.streamsPerPeer, priority: state.spec.priority }, state)

  const draftOf = ({ spec, leftMs, attempts }: CallState): Draft => ({
    type: 'request',
    callType: 'stream',
    payload: spec.payload,
    messageId: spec.messageId,
    correlationId: spec.correlationId,
    traceId: spec.traceId,
    spanId: newSpanId((length) => random.bytes(length)),
    capability: spec.capability,
    timeoutMs: Math.max(1, Math.ceil(leftMs)),
    priority: spec.priority,
    attempt: attempts.length + 1,
    path: spec.path,
    sessionId: spec.sessionId,
    delegation: spec.delegation,
  })

  /** The input, where it travels apart, goes out while answers are read already: a refusal may come in the middle of it. */
  const sendInput = async (stream: Stream, state: CallState): Promise<void> => {
    const { spec, ids } = state
    const header = {
      message_id: ids.messageId,
      correlation_id: ids.correlationId,
      trace_id: ids.traceId,
      payload_size: spec.payload.length,
    }
    const { agentId } = stream.link.remote
    await sendPayload(
      stream,
      spec.payload,
      (end) =>
        outbox.seal(stream.link, {
          type: 'end',
          payload: encodePayload('application/json', end),
          messageId: spec.messageId,
          correlationId: spec.correlationId,
          traceId: spec.traceId,
          spanId: newSpanId((length) => random.bytes(length)),
          timeoutMs: Math.max(1, Math.ceil(state.leftMs)),
          inReplyTo: stream.leaf,
        }).frame,
      { progress: progressOf({ telemetry, tunables, header, agentId, direction: 'out' }), halfOnly: true },
    )
  }

  /** Reads piece after piece, each when it is wanted, to the signed end. */
  const read = async (stream: Stream, state: CallState, reader: PieceReader): Promise<Ending> => {
    // Nobody may ask for a long time; what ends the stream ends the waiting too.
    const wanted = interruptible()
    stream.onOver((error) => error && wanted.interrupt(error))
    for (;;) {
      await wanted.wait(reader.wanted())
      let piece: Piece
      if (state.committed) piece = await nextWithin(stream, tunables.streamIdleMs + tunables.callerGraceMs, clock)
      else piece = await stream.next()
      if (piece.kind === 'data') {
        state.committed = true
        await reader.take(piece.bytes)
        continue
      }
      const end = readEnd(stream, piece.frame, inbox)
      stream.close()
      if (end.status === 'failed') return { kind: 'refused', error: fromWireError(end.error) }
      return { kind: 'answer', response: { status: 'completed', output: end.output ?? null } }
    }
  }

  const attemptOver = async (
    stream: Stream,
    apart: boolean,
    state: CallState,
    reader: PieceReader,
  ): Promise<Ending> => {
    const { agentId } = stream.link.remote
    stream.expect({ alsoWrites: false })
    state.abandon = (error) => stream.abort(error)
    if (state.endedBy) stream.abort(state.endedBy)
    if (apart) sendInput(stream, state).catch(() => undefined)
    try {
      return await read(stream, state, reader)
    } catch (thrown) {
      const error = HermesError.from(thrown)
      // Closes what is still open: the contract, or a reader that has gone, may be why.
      stream.abort(error)
      if (state.endedBy) return { kind: 'refused', error: state.endedBy }
      if (error.code === 'INVALID_OUTPUT') return { kind: 'refused', error }
      if (error.remote && !state.committed) return { kind: 'refused', error }
      return {
        kind: 'lost',
        error:
          error.code === 'STREAM_BROKEN'
            ? error
            : new HermesError('STREAM_BROKEN', {
                message: `the stream from ${agentId} broke: ${error.message}`,
                details: { cause_code: error.code },
                cause: error,
              }),
      }
    } finally {
      state.abandon = undefined
    }
  }

  return async (state, link, reader) => {
    const { agentId, epoch } = link.remote
    let release = (): void => undefined
    try {
      let opened: Awaited<ReturnType<Streams['open']>>
      try {
        release = await place(state, agentId)
        opened = await streams.open(link, draftOf(state), state.signal)
      } catch (error) {
        return { ending: { kind: 'refused', error: HermesError.from(error), neverStarts: true }, attempt: undefined }
      }
      const { stream, apart } = opened
      state.spec.reached?.(agentId)
      const number = state.attempts.length + 1
      const pending = {
        leaf: stream.leaf,
        agentId,
        epoch,
        answered: () => undefined,
        lost: () => undefined,
        distrusted: () => undefined,
      }
      const attempt: Attempt = { agentId, recipientEpoch: epoch, number, startedAt: clock.monotonic(), pending }
      state.attempts.push(attempt)
      if (telemetry.wants('call.attempt')) {
        telemetry.emit('call.attempt', { ...state.ids, agentId, attempt: number, leaf: stream.leaf })
      }
      const ending = await attemptOver(stream, apart, state, reader)
      state.settle(attempt)
      // An id that may have been started there is refused from now on: only others may be asked.
      if (ending.kind === 'lost' || (ending.kind === 'refused' && !notStarted(ending.error)))
        state.withdrawn.add(agentId)
      return { ending, attempt: undefined }
    } finally {
      release()
    }
  }
}
