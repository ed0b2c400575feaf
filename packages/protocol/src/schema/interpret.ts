import { pointerTo } from '../payload/pointer.ts'
import { evaluate, type Failure, type Run } from './node.ts'
import { prepareSchema } from './prepare.ts'

/** What a guard says of a value: whether it fits, else where (JSON Pointer) and why. */
export type SchemaVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly path: string; readonly message: string }

/** Judges values by a schema that somebody else wrote. */
export interface SchemaGuard {
  /** Plain JSON data. Never throws; a check that would take too much work ends as not fitting. */
  check(value: unknown): SchemaVerdict
}

export interface SchemaGuardOptions {
  /** How errors name the schema, default `schema`. */
  what?: string
}

/** Steps that one check may take: a fraction of a second at worst, far more than honest schemas and payloads need. */
const MAX_STEPS = 4_000_000

/**
 * Makes a guard of a JSON Schema (draft 2020-12) of a stranger. It is interpreted, never compiled to code; nothing is
 * fetched or read; patterns run in linear time; work is bounded both here and in each check.
 *
 * Honoured: `type`, `enum`, `const`, all bounds of numbers, texts, lists and objects, `multipleOf`, `pattern`,
 * `uniqueItems`, `required`, `dependentRequired`, `properties`, `patternProperties`, `additionalProperties`,
 * `propertyNames`, `dependentSchemas`, `prefixItems`, `items`, `contains`, `allOf`, `anyOf`, `oneOf`, `not`,
 * `if`/`then`/`else`, `$defs` and `$ref` within the document. `format` and all that describes is passed over.
 *
 * Throws `INVALID_CONTRACT` that names the place: more than 16 KiB, 16 levels or 500 subschemas; a `$ref` that is not
 * `#/…`, leads nowhere or back; a pattern that RE2 cannot run; keywords that would need any of this
 * (`$dynamicRef`, `unevaluated…`, those of older drafts).
 */
export function createSchemaGuard(schema: unknown, options: SchemaGuardOptions = {}): SchemaGuard {
  const root = prepareSchema(schema, options.what ?? 'schema')
  return {
    check(value) {
      if (value === undefined) return { ok: false, path: '', message: 'is missing' }
      const budget = createBudget()
      let found: Failure | undefined
      try {
        found = evaluate(root, value, budget)
      } catch (error) {
        if (error !== OVER_BUDGET) throw error
        return { ok: false, path: '', message: 'takes too much work to check against this schema' }
      }
      return found ? { ok: false, path: pointerTo(found.path.reverse()), message: found.message } : { ok: true }
    },
  }
}

const OVER_BUDGET = new Error('over budget')

function createBudget(): Run {
  let left = MAX_STEPS
  return {
    spend(steps) {
      left -= steps
      if (left < 0) throw OVER_BUDGET
    },
  }
}
