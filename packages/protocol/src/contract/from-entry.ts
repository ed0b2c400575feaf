import type { CapabilityEntry } from '../documents/manifest.ts'
import { isHermesError } from '../errors/hermes-error.ts'
import { capability } from './capability.ts'
import { fromJsonSchema } from './from-json-schema.ts'
import { Unpublishable } from './json-schema.ts'
import { invalidContract } from './refusal.ts'
import type { CapabilitySpec } from './spec.ts'
import type { AnySchema, Capability } from './types.ts'

/** An entry as somebody writes it: what is left out has the default of `capability()`. */
export type CapabilityDraft = Pick<CapabilityEntry, 'name'> & Partial<CapabilityEntry>

/** Field of an entry → where a contract has it. */
const SPEC_FIELDS = {
  description: ['description'],
  effects: ['effects'],
  labels: ['labels'],
  negative_capabilities: ['negativeCapabilities'],
  constraints: ['constraints'],
  errors: ['errors'],
  input_schema: ['input'],
  output_schema: ['output'],
  partial_schema: ['partial'],
  yields_schema: ['yields'],
  question_schema: ['asks', 'question'],
  answer_schema: ['asks', 'answer'],
} as const
const BOUND_FIELDS = {
  max_concurrency: 'maxConcurrency',
  budget_ms: 'budgetMs',
  cost_level: 'costLevel',
  p99_ms: 'p99Ms',
} as const
const FIELDS: ReadonlySet<string> = new Set(['name', 'call_type', ...Object.keys(SPEC_FIELDS)])
const CALL_TYPES: ReadonlySet<unknown> = new Set(['request', 'task', 'stream', undefined])

/**
 * The contract that an entry of a manifest, or a part of a file written in its form, describes; values are checked by its JSON
 * Schemas. An entry that streams or asks but says not with what accepts anything there. Throws `INVALID_NAME`,
 * `CAPABILITY_RESERVED`, and `INVALID_CONTRACT` that names the field as the entry has it.
 */
export function capabilityFrom(entry: CapabilityDraft): Capability {
  const name = String(entry?.name)
  const refuse: Refuse = (issue, ...path) => {
    throw invalidContract(name, path, issue)
  }
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) refuse('is not an object')
  for (const field of Object.keys(entry)) {
    if (!FIELDS.has(field)) refuse(`is not a field of a capability; it has ${[...FIELDS].join(', ')}`, field)
  }
  if (!CALL_TYPES.has(entry.call_type)) refuse('is not request, task or stream', 'call_type')
  const spec = specOf(name, entry, refuse)
  try {
    return capability(entry.name, spec)
  } catch (cause) {
    throw inItsWords(name, cause)
  }
}

type Refuse = (issue: string, ...path: string[]) => never

function specOf(name: string, entry: CapabilityDraft, refuse: Refuse): CapabilitySpec {
  const { call_type, effects, labels, negative_capabilities: negativeCapabilities } = entry
  const schema = (field: keyof CapabilityDraft, otherwise?: unknown): AnySchema | undefined => {
    const value = entry[field] ?? otherwise
    return value === undefined ? undefined : schemaAt(name, [field], value)
  }
  const streams = call_type === 'stream' ? {} : undefined
  const asks = call_type === 'task' ? {} : undefined
  const yields = schema('yields_schema', streams)
  const question = schema('question_schema', asks)
  const answer = schema('answer_schema', asks)
  if (yields && call_type !== undefined && call_type !== 'stream') refuse('is for call_type stream', 'yields_schema')
  if (question && call_type !== undefined && call_type !== 'task') refuse('is for call_type task', 'question_schema')
  if ((question === undefined) !== (answer === undefined)) {
    refuse('goes with the other of question_schema and answer_schema', question ? 'question_schema' : 'answer_schema')
  }
  const partial = schema('partial_schema')
  return {
    description: entry.description as string,
    input: schema('input_schema') as AnySchema,
    output: schema('output_schema') as AnySchema,
    ...(partial === undefined ? {} : { partial }),
    ...(yields === undefined ? {} : { yields }),
    ...(question === undefined ? {} : { asks: { question, answer } }),
    ...(entry.errors === undefined ? {} : { errors: errorsOf(name, entry.errors) }),
    ...(effects === undefined ? {} : { effects }),
    ...(labels === undefined ? {} : { labels }),
    ...(entry.constraints === undefined ? {} : { constraints: boundsOf(entry.constraints, refuse) }),
    ...(negativeCapabilities === undefined ? {} : { negativeCapabilities }),
  }
}

function schemaAt(name: string, path: readonly string[], value: unknown): AnySchema {
  try {
    // `false` and `true` are schemas too, but a contract publishes objects.
    return fromJsonSchema(value === true ? {} : value)
  } catch (cause) {
    if (!(cause instanceof Unpublishable)) throw cause
    throw invalidContract(name, path, cause.message, { within: cause.path, cause })
  }
}

function errorsOf(name: string, errors: unknown): Record<string, AnySchema> {
  // What is no object of schemas is refused by the contract itself.
  if (typeof errors !== 'object' || errors === null || Array.isArray(errors)) return errors as never
  return Object.fromEntries(
    Object.entries(errors).map(([error, schema]) => [error, schemaAt(name, ['errors', error], schema)]),
  )
}

function boundsOf(constraints: unknown, refuse: Refuse): Record<string, number> {
  if (typeof constraints !== 'object' || constraints === null || Array.isArray(constraints)) return constraints as never
  return Object.fromEntries(
    Object.entries(constraints).map(([field, value]) => {
      if (!Object.hasOwn(BOUND_FIELDS, field)) {
        refuse(`is not one of ${Object.keys(BOUND_FIELDS).join(', ')}`, 'constraints', field)
      }
      return [BOUND_FIELDS[field as keyof typeof BOUND_FIELDS], value]
    }),
  )
}

/** The refusal of a contract with the field as the entry names it. */
function inItsWords(name: string, cause: unknown): unknown {
  if (!isHermesError(cause) || cause.code !== 'INVALID_CONTRACT') return cause
  const path = String(cause.details.path).split('/').slice(1)
  const issue = String(cause.details.issue)
  const bound = Object.entries(BOUND_FIELDS).find(([, field]) => path[0] === 'constraints' && field === path[1])?.[0]
  if (bound !== undefined) return invalidContract(name, ['constraints', bound], issue)
  for (const [field, at] of Object.entries(SPEC_FIELDS)) {
    if (at.every((step, index) => step === path[index])) {
      return invalidContract(name, [field, ...path.slice(at.length)], issue)
    }
  }
  return cause
}
