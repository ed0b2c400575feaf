import {
  decodePayload,
  type EndPayload,
  encodePayload,
  HermesError,
  type JsonObject,
  LIMITS,
  newSpanId,
  type ResponsePayload,
  toWireError,
} from '@hermes-peer/protocol'
import type { Clock, Timer } from '../clock.ts'
import type { Tunables } from '../defaults.ts'
import type { Outcome } from '../delivery/dedup.ts'
import type { Incoming } from '../delivery/inbox.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { Random } from '../random.ts'
import { interruptible, onAbort } from '../signals.ts'
import type { Stream } from '../streams/stream.ts'
import type { Job } from './job.ts'
import type { JobSink, StreamingJob } from './job-sink.ts'
import { checkNullish } from './nullish.ts'
import { invalidResult } from './outcomes.ts'

export interface StreamSinkOptions {
  readonly stream: Stream
  readonly incoming: Incoming
  readonly outbox: Outbox
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
}

/** An end is on its way for no longer than this, ms. */
const END_LIFE_MS = 60_000

/** Makes the signed end of a stream that `incoming` has opened. */
export function endSealer({ stream, incoming, outbox, random }: Omit<StreamSinkOptions, 'clock' | 'tunables'>) {
  const { header } = incoming
  return (end: EndPayload): Uint8Array =>
    outbox.seal(stream.link, {
      type: 'end',
      payload: encodePayload(header.content_type, end),
      messageId: header.message_id,
      correlationId: header.correlation_id,
      traceId: header.trace_id,
      spanId: newSpanId((length) => random.bytes(length)),
      contentType: header.content_type,
      timeoutMs: END_LIFE_MS,
      priority: header.priority,
      inReplyTo: stream.leaf,
    }).frame
}

/** Carries the output of a handler that is an async generator: chunk by chunk, as fast as its reader reads. */
export function createStreamSink(options: StreamSinkOptions): JobSink & { bind(job: StreamingJob): void } {
  return new GeneratorSink(options)
}

class GeneratorSink implements JobSink {
  readonly #options: StreamSinkOptions
  readonly #seal
  #job: StreamingJob | undefined
  #told = false

  constructor(options: StreamSinkOptions) {
    this.#options = options
    this.#seal = endSealer(options)
  }

  bind(job: StreamingJob): void {
    this.#job = job
    this.#options.stream.onOver((error) => {
      if (!error) return
      // What the caller says when it gives up; whatever else happened, nobody reads any more.
      const said = error.remote && (error.code === 'CANCELLED' || error.code === 'TIMEOUT')
      job.abort(said ? error : gone(error))
    })
  }

  async carry(returned: unknown, job: Job): Promise<unknown> {
    const generator = returned as AsyncGenerator<unknown, unknown>
    const { out } = this.#options.stream
    const room = interruptible()
    const release = onAbort(job.signal, () => room.interrupt(job.aborted))
    const idle = this.#watchIdle()
    try {
      for (;;) {
        if (job.aborted) throw job.aborted
        if (out.held) await room.wait(out.ready())
        idle.since()
        const step = await generator.next()
        idle.until()
        if (job.aborted) throw job.aborted
        if (step.done) return step.value
        out.data(await this.#chunk(job, step.value))
        idle.first()
      }
    } catch (error) {
      // Runs its `finally`: after an abort as after a refused chunk. What it throws then is of no interest any more.
      await generator.return(undefined).catch(() => undefined)
      throw error
    } finally {
      release()
      idle.stop()
    }
  }

  end(outcome: Outcome): void {
    if (this.#told) return
    this.#told = true
    const { stream, clock, tunables } = this.#options
    let frame: Uint8Array
    try {
      frame = this.#seal(this.#payload(outcome))
    } catch (error) {
      frame = this.#seal(this.#failed(toWireError(invalidResult(error)) as unknown as JsonObject))
    }
    // A reader that has paused may take its time with what it has, but no longer than the whole may take.
    const left = this.#job ? this.#job.deadline - clock.monotonic() : 0
    stream.end(frame, Math.max(tunables.writeStallMs, left)).catch(() => undefined)
  }

  #payload(outcome: Outcome): EndPayload {
    const payload = decodePayload(outcome.contentType, outcome.payload)
    if (outcome.messageType === 'error') return this.#failed(payload as JsonObject)
    const { status, output } = payload as unknown as ResponsePayload
    if (status !== 'completed') {
      throw new HermesError('INVALID_RESULT', {
        message: 'a stream ends with a result, it cannot ask for confirmation',
      })
    }
    const { count, hash } = this.#options.stream.out.chain
    return { status, count, running_hash: hash, output }
  }

  #failed(error: JsonObject): EndPayload {
    const { count, hash } = this.#options.stream.out.chain
    return { status: 'failed', count, running_hash: hash, error }
  }

  /** One piece as it is sent; what the contract does not allow ends the job as an invalid result does. */
  async #chunk(job: Job, value: unknown): Promise<Uint8Array> {
    const { name, schemas } = job.provided.contract
    try {
      if (schemas.yields) {
        const checked = checkNullish(schemas.yields, value, 'yield', { code: 'INVALID_RESULT' })
        if (checked instanceof Promise) await checked
      }
      const bytes = encodePayload(job.incoming.header.content_type, value ?? null)
      if (bytes.length <= LIMITS.chunk) return bytes
      throw new HermesError('INVALID_RESULT', {
        message: `${name} yielded ${bytes.length} bytes at once, the limit is ${LIMITS.chunk}: yield smaller pieces`,
        details: { size: bytes.length, limit: LIMITS.chunk },
      })
    } catch (error) {
      const reason = invalidResult(error)
      job.abort(reason)
      throw reason
    }
  }

  /** From the first chunk on the handler may be silent for `streamIdleMs` at a time; a reader that has paused is no silence. */
  #watchIdle() {
    const { clock, tunables } = this.#options
    let waitingSince: number | undefined
    let timer: Timer | undefined
    const look = (): void => {
      const silent = waitingSince === undefined ? 0 : clock.monotonic() - waitingSince
      if (silent >= tunables.streamIdleMs) this.#job?.expire(`it yielded nothing for ${tunables.streamIdleMs} ms`)
      else timer = clock.after(tunables.streamIdleMs - silent, look)
    }
    return {
      since: () => {
        waitingSince = clock.monotonic()
      },
      until: () => {
        waitingSince = undefined
      },
      first: () => {
        timer ??= clock.after(tunables.streamIdleMs, look)
      },
      stop: () => clock.clear(timer),
    }
  }
}

function gone(cause: HermesError): HermesError {
  return new HermesError('CALLER_GONE', { message: `nobody reads the stream any more: ${cause.message}`, cause })
}
