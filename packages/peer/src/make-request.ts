import {
  type AnySchema,
  type Capability,
  checkAgainst,
  HermesError,
  type InputOf,
  type OutputOf,
  type PartialOf,
} from '@hermes-peer/protocol'
import type { Answer, CallOptions } from './api.ts'
import { callSpec, type SpecSource, workOf } from './call-spec.ts'
import type { CallSpec } from './calls/call.ts'
import type { Answered } from './calls/caller.ts'
import { checkNullish } from './calls/nullish.ts'
import { checkContract, checkPlain } from './checks.ts'
import type { Clock } from './clock.ts'
import type { Tunables } from './defaults.ts'
import type { Random } from './random.ts'

export interface MakeRequestOptions extends Pick<SpecSource, 'sessionId' | 'grant' | 'served'> {
  readonly clock: Clock
  readonly random: Random
  readonly tunables: Tunables
  carryOut(spec: CallSpec, signal: AbortSignal | undefined): Promise<Answered>
}

/** One call by its contract: checks the input, has it carried out, and parses what is answered. */
export async function makeRequest<C extends Capability>(
  contract: C,
  input: InputOf<C>,
  options: CallOptions,
  { clock, random, tunables, carryOut, ...inherited }: MakeRequestOptions,
): Promise<Answer<C>> {
  const since = clock.monotonic()
  checkContract(contract, 'call')
  checkPlain(contract)
  const validated = checkAgainst(contract.schemas.input, input, 'input')
  if (validated instanceof Promise) await validated
  const spec = callSpec(
    {
      ...workOf(contract, input),
      options,
      ...inherited,
    },
    { clock, random, tunables },
  )
  const { response, agentId, state } = await carryOut(spec, options.signal).catch((error: unknown) =>
    parseDeclared(contract, error),
  )
  const base = {
    agent: agentId,
    messageId: spec.messageId,
    correlationId: spec.correlationId,
    traceId: spec.traceId,
    attempts: state.reports,
    tookMs: clock.monotonic() - since,
  }
  const parse = async (schema: AnySchema | undefined, value: unknown, what: string): Promise<unknown> => {
    if (!schema) return value
    try {
      return await checkNullish(schema, value, what, { code: 'INVALID_OUTPUT' })
    } catch (error) {
      throw HermesError.from(error).with({
        message: `${agentId} answered ${contract.name} with what its contract does not allow: ${(error as Error).message}`,
        messageId: spec.messageId,
        traceId: spec.traceId,
      })
    }
  }
  const { output, partial } = contract.schemas
  if (response.status === 'need_confirmation') {
    const partialResult = (await parse(partial, response.partial_result, 'partial')) as PartialOf<C>
    return { ...base, status: 'need_confirmation', output: undefined, partialResult }
  }
  const completed = (await parse(output, response.output, 'output')) as OutputOf<C>
  return { ...base, status: 'completed', output: completed, partialResult: undefined }
}

/** Data of a declared error arrives as the contract's schema parses it. */
export async function parseDeclared(contract: Capability, thrown: unknown): Promise<never> {
  const error = HermesError.from(thrown)
  const schema = error.declared && contract.schemas.errors[error.declared.name]
  if (!error.declared || !schema) throw error
  const { name, data } = error.declared
  const parsed = await checkAgainst(schema, data, `data of ${name}`, { code: 'INVALID_OUTPUT' })
  throw error.with({ declared: { name, data: parsed } })
}
