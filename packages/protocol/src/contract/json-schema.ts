import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isHermesError } from '../errors/hermes-error.ts'
import { pointerTo } from '../payload/pointer.ts'
import { deepFreeze, isJsonObject } from '../payload/value.ts'
import { compilePattern } from '../schema/pattern.ts'
import { prepareSchema } from '../schema/prepare.ts'
import type { AnySchema, JsonSchema } from './types.ts'

/** Why a schema cannot be published; `path` is a JSON Pointer into it. */
export class Unpublishable extends Error {
  readonly path: string

  constructor(path: string, issue: string, cause?: unknown) {
    super(issue, cause === undefined ? undefined : { cause })
    this.path = path
  }
}

export function isStandardSchema(value: unknown): value is AnySchema {
  // ArkType's schemas are functions.
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const props = (value as Partial<AnySchema>)['~standard']
  return typeof props === 'object' && props !== null && props.version === 1 && typeof props.validate === 'function'
}

/**
 * The JSON Schema of what travels: of the input side, because the original value is sent. Made by the schema's own
 * converter (Standard JSON Schema, else a `toJSONSchema` method), and held to the bounds that other peers have for
 * schemas of strangers, so that what is published can be used. Throws {@link Unpublishable}.
 */
export function publishSchema(schema: AnySchema): JsonSchema {
  const converted = convert(schema)
  if (!isJsonObject(converted)) throw new Unpublishable('', 'its JSON Schema is not an object')
  const { $schema, ...published } = tidy(converted, [], true) as Record<string, unknown>
  try {
    prepareSchema({ ...($schema === undefined ? {} : { $schema }), ...published }, '')
  } catch (cause) {
    if (!isHermesError(cause)) throw cause
    const { path, issue } = cause.details as { path: string; issue: string }
    throw new Unpublishable(path, issue, cause)
  }
  return deepFreeze(published)
}

interface Converter {
  input(options: { target: string; libraryOptions?: Record<string, unknown> }): unknown
}

const TARGET = 'draft-2020-12'

function convert(schema: AnySchema): unknown {
  const { vendor, jsonSchema } = schema['~standard'] as StandardSchemaV1.Props & { jsonSchema?: Converter }
  const { toJSONSchema } = schema as { toJSONSchema?: (options: object) => unknown }
  try {
    if (jsonSchema !== undefined) return jsonSchema.input({ target: TARGET })
    if (typeof toJSONSchema === 'function') return toJSONSchema.call(schema, { io: 'input', target: TARGET })
  } catch (cause) {
    const path = vendor === 'zod' && jsonSchema !== undefined ? placeInZod(jsonSchema) : ''
    throw new Unpublishable(path, `${(cause as Error)?.message ?? cause}; use what JSON has: ${REMEDY}`, cause)
  }
  throw new Unpublishable(
    '',
    `${vendor} gives no JSON Schema of it here; use zod 4.2 or later, or another Standard JSON Schema`,
  )
}

const REMEDY = 'text for dates and bigints, null for nothing, objects and arrays for Map and Set'

/** Zod tells the place of what it cannot express only to a handler of its own. */
function placeInZod(jsonSchema: Converter): string {
  let place = ''
  const unrepresentable = ({ path }: { path: (string | number)[] }) => {
    place = pointerTo(path)
    return 'throw'
  }
  try {
    jsonSchema.input({ target: TARGET, libraryOptions: { unrepresentable } })
  } catch {
    // As it did before; now the place is known.
  }
  return place
}

/** Keywords whose value is data, not a schema. */
const DATA: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples'])
/** Keywords under which a schema that accepts more makes the whole accept less. */
const INVERTING: ReadonlySet<string> = new Set(['not', 'if', 'oneOf', 'contains'])

/**
 * A copy without the patterns that RE2 cannot run, where a `format` beside it says what is meant (durations, emoji, host
 * names): the schema itself still checks them, and what is published only accepts more.
 */
function tidy(value: unknown, path: readonly string[], mayLoosen: boolean): unknown {
  if (Array.isArray(value)) return value.map((item, index) => tidy(item, [...path, String(index)], mayLoosen))
  if (typeof value !== 'object' || value === null) return value
  const { format, contentEncoding, pattern } = value as Record<string, unknown>
  if (contentEncoding === 'binary') throw new Unpublishable(pointerTo(path), 'a file is not JSON data; use base64 text')
  const copy: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue
    if (mayLoosen && key === 'pattern' && typeof format === 'string' && !runs(pattern)) continue
    copy[key] = DATA.has(key) ? item : tidy(item, [...path, key], mayLoosen && !INVERTING.has(key))
  }
  return copy
}

function runs(pattern: unknown): boolean {
  try {
    compilePattern(String(pattern))
    return true
  } catch {
    return false
  }
}
