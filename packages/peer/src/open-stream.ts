import { type Capability, checkAgainst, decodePayload, HermesError, type InputOf } from '@hermes-peer/protocol'
import type { CallOptions, ResultStream } from './api.ts'
import { callSpec, workOf } from './call-spec.ts'
import type { CallSpec } from './calls/call.ts'
import type { Answered } from './calls/caller.ts'
import type { Served } from './calls/context.ts'
import { checkNullish } from './calls/nullish.ts'
import { createPieces } from './calls/pieces.ts'
import type { Clock } from './clock.ts'
import type { Tunables } from './defaults.ts'
import type { Random } from './random.ts'

export interface OpenStreamOptions {
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  readonly served: Served | undefined
  /** That agent may pull the context from now on. */
  grant(ref: string, agentId: string): void
  carryOut(spec: CallSpec, signal: AbortSignal): Promise<Answered>
  parseDeclared(error: unknown): Promise<never>
}

/** Begins a streaming call; an input that its schema refuses is told by the stream, as everything that goes wrong later. */
export function openStream<C extends Capability>(
  contract: C,
  input: InputOf<C>,
  options: CallOptions,
  { clock, random, tunables, served, grant, carryOut, parseDeclared }: OpenStreamOptions,
): ResultStream<C> {
  const { yields, output } = contract.schemas
  if (yields === undefined) {
    throw new HermesError('INVALID_CONTRACT', {
      message: `stream: ${contract.name} has no yields`,
      hint: 'Use call().',
      details: { field: 'contract' },
    })
  }
  const stop = new AbortController()
  const pieces = createPieces({ cancel: (reason) => stop.abort(reason) })
  const spec = callSpec(
    {
      ...workOf(contract, input),
      options,
      grant,
      served,
      reader: {
        wanted: () => pieces.wanted(),
        take(bytes) {
          const value = checkNullish(yields, decodePayload('application/json', bytes), 'yield', {
            code: 'INVALID_OUTPUT',
          })
          if (value instanceof Promise) return value.then((one) => pieces.give(one))
          pieces.give(value)
        },
      },
    },
    { clock, random, tunables },
  )
  const { messageId, traceId } = spec
  const run = async (): Promise<unknown> => {
    const validated = checkAgainst(contract.schemas.input, input, 'input')
    if (validated instanceof Promise) await validated
    const { response, agentId } = await carryOut(spec, stop.signal).catch(parseDeclared)
    try {
      return await checkNullish(output, response.output, 'output', { code: 'INVALID_OUTPUT' })
    } catch (error) {
      throw HermesError.from(error).with({
        message: `${agentId} ended ${contract.name} with what its contract does not allow: ${(error as Error).message}`,
        messageId,
        traceId,
      })
    }
  }
  const signal = options.signal
  const aborted = (): void => stop.abort(signal?.reason)
  if (signal?.aborted) aborted()
  else signal?.addEventListener('abort', aborted, { once: true })
  const result = run().finally(() => signal?.removeEventListener('abort', aborted))
  result.then(
    () => pieces.end(undefined),
    (error: unknown) => pieces.end(HermesError.from(error)),
  )
  return {
    [Symbol.asyncIterator]: () => pieces.iterator() as AsyncIterator<never, undefined>,
    result: result as ResultStream<C>['result'],
    messageId,
    cancel: (reason) => pieces.cancel(reason),
  }
}
