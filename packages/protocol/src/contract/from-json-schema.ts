import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isHermesError } from '../errors/hermes-error.ts'
import { isJsonObject } from '../payload/value.ts'
import { createSchemaGuard } from '../schema/interpret.ts'
import { Unpublishable } from './json-schema.ts'
import type { AnySchema } from './types.ts'

/**
 * A schema for contracts that are read from a file or a manifest instead of written in code: checks values by a JSON Schema (draft
 * 2020-12, the keywords and bounds of {@link createSchemaGuard}) and gives it back as it is. Throws {@link Unpublishable}.
 */
export function fromJsonSchema(schema: unknown): AnySchema {
  if (!isJsonObject(schema)) throw new Unpublishable('', 'is not a JSON Schema: an object')
  const guard = guardOf(schema)
  return {
    '~standard': {
      version: 1,
      vendor: 'hermes-peer',
      validate(value: unknown): StandardSchemaV1.Result<unknown> {
        const verdict = guard.check(value)
        if (verdict.ok) return { value }
        return { issues: [{ message: verdict.message, path: stepsOf(verdict.path) }] }
      },
      // Standard JSON Schema: what `capability()` publishes.
      jsonSchema: { input: () => schema, output: () => schema },
    } as AnySchema['~standard'],
  }
}

function guardOf(schema: unknown) {
  try {
    return createSchemaGuard(schema, { what: '' })
  } catch (cause) {
    if (!isHermesError(cause)) throw cause
    throw new Unpublishable(String(cause.details.path), String(cause.details.issue), cause)
  }
}

/** The steps of a JSON Pointer. */
function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
