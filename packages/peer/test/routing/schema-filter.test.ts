import { describe, expect, it } from 'vitest'
import { createSchemaFilter } from '../../src/routing/schema-filter.ts'
import { capabilityEntry } from './support.ts'

const numbers = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false }
const offered = (input: unknown) => capabilityEntry({ name: 'work', input })

describe('the schema filter', () => {
  it('accepts what the provider accepts, and names the place of what it does not', () => {
    const accepts = createSchemaFilter()
    const entry = offered(numbers)
    expect(accepts(entry, { value: { n: 5 }, schema: undefined })).toBeUndefined()
    expect(accepts(entry, { value: { n: 'x' }, schema: undefined })).toContain('/n')
    expect(accepts(entry, { value: {}, schema: undefined })).toMatch(/does not accept the input/)
    expect(accepts(entry, { value: null, schema: undefined })).toContain(' / ')
  })

  it('judges an input by the provider’s schema also when our contract has another one', () => {
    const accepts = createSchemaFilter()
    const ours = { type: 'object', properties: { n: { type: 'string' } } }
    expect(accepts(offered(numbers), { value: { n: 'x' }, schema: ours })).toContain('/n')
  })

  it('does not check again what our own contract, equal to the provider’s, has checked', () => {
    const accepts = createSchemaFilter()
    const trap = Object.defineProperty({}, 'n', {
      get: () => {
        throw new Error('looked at')
      },
      enumerable: true,
    })
    expect(accepts(offered(numbers), { value: trap, schema: structuredClone(numbers) })).toBeUndefined()
  })

  it('F-08 never fetches, hangs or throws for a schema from a stranger', () => {
    const accepts = createSchemaFilter()
    const nested = (depth: number): object => (depth === 0 ? {} : { allOf: [nested(depth - 1), {}] })
    for (const schema of [
      { $ref: 'http://127.0.0.1:1/schema' },
      { $ref: 'file:///etc/passwd' },
      { $ref: '#' },
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
      nested(400),
      true,
      null,
      'text',
      { type: 'nonsense' },
    ]) {
      const since = performance.now()
      const verdict = accepts(offered(schema), { value: { text: 'x' }, schema: undefined })
      if (schema !== true) expect(verdict, JSON.stringify(schema)?.slice(0, 60)).toMatch(/cannot be used/)
      expect(performance.now() - since).toBeLessThan(1000)
    }
    const bait = accepts(offered({ type: 'string', pattern: '^(a+)+$' }), {
      value: `${'a'.repeat(40)}!`,
      schema: undefined,
    })
    expect(bait).toBeDefined()
  })
})
