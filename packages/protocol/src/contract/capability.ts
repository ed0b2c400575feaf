import { HermesError } from '../errors/hermes-error.ts'
import { checkName, isReservedName } from '../names.ts'
import { isStandardSchema, publishSchema, Unpublishable } from './json-schema.ts'
import { invalidContract } from './refusal.ts'
import { type CapabilitySpec, checkSpec } from './spec.ts'
import type { AnySchema, Capability, CapabilitySchemas, JsonSchema, PublishedSchemas } from './types.ts'

// Known across copies of this package, as errors are.
const brand = Symbol.for('hermes-peer/capability')

/**
 * Makes the contract that provider and caller share: a name (`code_review`, or `code_review@2` for its second major),
 * what it does, and schemas of what goes in and out. Any Standard Schema that can give a JSON Schema is accepted.
 *
 * Throws `INVALID_NAME`, `CAPABILITY_RESERVED` for names under `hermes.`, and `INVALID_CONTRACT` that names the field,
 * or the place in a schema that JSON cannot carry (dates, functions, bigint, undefined, Map …).
 */
export function capability<
  I extends AnySchema,
  O extends AnySchema,
  P extends AnySchema | undefined = undefined,
  Y extends AnySchema | undefined = undefined,
  Q extends AnySchema | undefined = undefined,
  A extends AnySchema | undefined = undefined,
  E extends Readonly<Record<string, AnySchema>> = Readonly<Record<never, never>>,
>(
  name: string,
  spec: CapabilitySpec<I, O, P, Y, Q, A, E>,
): Capability<{ input: I; output: O; partial: P; yields: Y; question: Q; answer: A; errors: E }>
export function capability(name: string, spec: CapabilitySpec): Capability {
  checkName('capability', name)
  if (isReservedName(name)) {
    throw new HermesError('CAPABILITY_RESERVED', {
      message: `capability ${name}: names under hermes. belong to the runtime`,
    })
  }
  checkSpec(name, spec)
  const { asks } = spec
  const schemas: CapabilitySchemas = {
    input: schemaOf(name, ['input'], spec.input),
    output: schemaOf(name, ['output'], spec.output),
    partial: optional(name, ['partial'], spec.partial),
    yields: optional(name, ['yields'], spec.yields),
    question: asks && schemaOf(name, ['asks', 'question'], asks.question),
    answer: asks && schemaOf(name, ['asks', 'answer'], asks.answer),
    errors: Object.freeze({ ...spec.errors }),
  }
  const contract: Capability = {
    name,
    description: spec.description,
    effects: spec.effects ?? 'once',
    labels: Object.freeze(
      mapValues(spec.labels ?? {}, (label) => (typeof label === 'string' ? label : Object.freeze([...label]))),
    ),
    constraints: Object.freeze({ ...spec.constraints }),
    negativeCapabilities: Object.freeze([...(spec.negativeCapabilities ?? [])]),
    schemas: Object.freeze(schemas),
    jsonSchemas: Object.freeze(publish(name, schemas)),
  }
  return Object.freeze(Object.defineProperty(contract, brand, { value: true }))
}

/** Whether a value is a contract, also one of another copy of this package. */
export function isCapability(value: unknown): value is Capability {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
}

function publish(name: string, schemas: CapabilitySchemas): PublishedSchemas {
  const { input, output, partial, yields, question, answer, errors } = schemas
  const some = (schema: AnySchema | undefined, ...path: string[]) => schema && published(name, path, schema)
  return {
    input: published(name, ['input'], input),
    output: published(name, ['output'], output),
    partial: some(partial, 'partial'),
    yields: some(yields, 'yields'),
    question: some(question, 'asks', 'question'),
    answer: some(answer, 'asks', 'answer'),
    errors: Object.freeze(
      mapValues(errors, (schema, error) =>
        published(name, ['errors', error], schemaOf(name, ['errors', error], schema)),
      ),
    ),
  }
}

function published(name: string, path: readonly string[], schema: AnySchema): JsonSchema {
  try {
    return publishSchema(schema)
  } catch (cause) {
    if (!(cause instanceof Unpublishable)) throw cause
    throw invalidContract(name, path, cause.message, { within: cause.path, cause })
  }
}

function schemaOf(name: string, path: readonly string[], schema: unknown): AnySchema {
  if (isStandardSchema(schema)) return schema
  const found = schema === undefined ? 'is missing' : 'is not a Standard Schema'
  throw invalidContract(name, path, `${found}; give a schema of zod 4 or another library that speaks Standard Schema`)
}

function optional(name: string, path: readonly string[], schema: unknown): AnySchema | undefined {
  return schema === undefined ? undefined : schemaOf(name, path, schema)
}

function mapValues<T, R>(object: Readonly<Record<string, T>>, map: (value: T, key: string) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]))
}
