import { type Schema, Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createSchemaGuard } from '../../src/schema/interpret.ts'

// Another interpreter, not fit for strangers' schemas but right about honest ones.

const name = fc.constantFrom('a', 'b', 'c')
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'medium' },
    fc.constantFrom(null, true, false, 0, 1, 2, 2.5, -1, '', 'a', 'ab', 'abc', '😀'),
    fc.array(tie('value'), { maxLength: 3 }),
    // Never empty: the other interpreter takes {} and [] to be equal.
    fc.dictionary(name, tie('value'), { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
  ),
})).value

const part = (keyword: string, arbitrary: fc.Arbitrary<unknown>) => arbitrary.map((item) => ({ [keyword]: item }))
const small = fc.nat(3)
const schema: fc.Arbitrary<unknown> = fc.letrec((tie) => {
  const nodes = fc.array(tie('schema'), { minLength: 1, maxLength: 3 })
  const named = fc.dictionary(name, tie('schema'), { maxKeys: 3, noNullPrototype: true })
  const type = fc.constantFrom('null', 'boolean', 'number', 'integer', 'string', 'array', 'object')
  const leaves = [
    part('type', fc.oneof(type, fc.uniqueArray(type, { minLength: 1 }))),
    part('const', value),
    part('enum', fc.array(value, { minLength: 1, maxLength: 3 })),
    ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'].map((keyword) =>
      part(keyword, fc.integer({ min: -1, max: 3 })),
    ),
    part('multipleOf', fc.constantFrom(1, 2, 0.5)),
    ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map((keyword) =>
      part(keyword, small),
    ),
    part('pattern', fc.constantFrom('^a', 'b$', 'a.c', '^[ab]*$')),
    part('uniqueItems', fc.boolean()),
    part('required', fc.uniqueArray(name)),
    part('dependentRequired', fc.dictionary(name, fc.uniqueArray(name), { noNullPrototype: true })),
  ]
  const branches = [
    part('properties', named),
    part(
      'patternProperties',
      fc.dictionary(fc.constantFrom('^a', 'b'), tie('schema'), { maxKeys: 2, noNullPrototype: true }),
    ),
    ...['additionalProperties', 'propertyNames', 'items', 'contains', 'not'].map((keyword) =>
      part(keyword, tie('schema')),
    ),
    part('dependentSchemas', named),
    ...['prefixItems', 'allOf', 'anyOf', 'oneOf'].map((keyword) => part(keyword, nodes)),
    fc.record({ contains: tie('schema'), minContains: small, maxContains: small }),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    fc.record({ if: tie('schema'), then: tie('schema'), else: tie('schema') }),
  ]
  const parts = fc.array(fc.oneof({ maxDepth: 3 }, fc.oneof(...leaves), fc.oneof(...leaves, ...branches)), {
    minLength: 1,
    maxLength: 3,
  })
  return {
    schema: fc.oneof(
      { weight: 9, arbitrary: parts.map((all) => Object.assign({}, ...all)) },
      { weight: 1, arbitrary: fc.boolean() },
    ),
  }
}).schema

it('a guard decides as another interpreter does', () => {
  const counts = { fits: 0, not: 0 }
  fc.assert(
    fc.property(schema, fc.array(value, { minLength: 4, maxLength: 8 }), (given, values) => {
      const guard = createSchemaGuard(given)
      const other = new Validator(structuredClone(given) as Schema, '2020-12')
      for (const item of values) {
        const { valid } = other.validate(structuredClone(item))
        counts[valid ? 'fits' : 'not']++
        expect(guard.check(item).ok, `${JSON.stringify(given)} with ${JSON.stringify(item)}`).toBe(valid)
      }
    }),
    { numRuns: 2_000 },
  )
  expect(Math.min(counts.fits, counts.not)).toBeGreaterThan(1_000)
})
