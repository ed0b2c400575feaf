import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createSchemaGuard } from '../../src/schema/interpret.ts'
import { refusalOf } from '../payload/support.ts'

const negated = (levels: number): unknown => (levels === 0 ? {} : { not: negated(levels - 1) })

function timed<T>(run: () => T): T {
  // Time of this process, so that others on the machine do not count.
  const start = process.cpuUsage()
  const result = run()
  expect(process.cpuUsage(start).user / 1000).toBeLessThan(1000)
  return result
}

const wrap = (keyword: string, levels: number): unknown => {
  let schema: unknown = { type: 'string' }
  for (let i = 0; i < levels; i++) schema = { [keyword]: [schema] }
  return schema
}

const nest = (levels: number): unknown => (levels === 0 ? {} : { properties: { a: nest(levels - 1) } })

describe('F-08: schemas from strangers', () => {
  it.each(['^(a+)+$', '^(a|a)*$', '^(.*a){12}$', '([a-z]+)*=', '^(?:a?){100}a{100}$', '[ab]*a[ab]{18}$'])(
    'a catastrophic pattern with its bait is answered in time: %s',
    (pattern) => {
      const guard = timed(() => createSchemaGuard({ type: 'string', pattern }))
      for (const bait of [`${'a'.repeat(5_000)}!`, `${'ab'.repeat(5_000)}!`, 'a'.repeat(200_000)])
        timed(() => guard.check(bait))
      expect(guard.check('!!').ok).toBe(false)
    },
  )

  it('a catastrophic pattern of property names is answered in time', () => {
    const guard = createSchemaGuard({ patternProperties: { '^(a+)+$': false }, additionalProperties: true })
    expect(timed(() => guard.check({ [`${'a'.repeat(50_000)}!`]: 1 }))).toEqual({ ok: true })
  })

  it.each(['allOf', 'anyOf', 'oneOf'])('4,000 nested %s are refused in time', (keyword) => {
    expect(timed(() => refusalOf(() => createSchemaGuard(wrap(keyword, 4_000)))).code).toBe('INVALID_CONTRACT')
  })

  it('a $ref to the network opens no connection', async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections++
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    for (const keyword of ['$ref', '$dynamicRef', '$recursiveRef', '$schema']) {
      const error = timed(() =>
        refusalOf(() => createSchemaGuard({ [keyword]: `http://127.0.0.1:${port}/schema.json` })),
      )
      expect(error).toMatchObject({ code: 'INVALID_CONTRACT', details: { path: `/${keyword}` } })
    }
    const guard = createSchemaGuard({ $id: `http://127.0.0.1:${port}/schema.json`, type: 'string' })
    expect(guard.check('x')).toEqual({ ok: true })
    await new Promise((resolve) => server.close(resolve))
    expect(connections).toBe(0)
  })

  it('a $ref to a file reads nothing', () => {
    expect(timed(() => refusalOf(() => createSchemaGuard({ $ref: 'file:///etc/passwd' }))).details.path).toBe('/$ref')
  })

  it.each([
    ['itself', { $ref: '#' }],
    ['itself by its place', { $defs: { a: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' }],
    ['itself by another', { $defs: { a: { $ref: '#/$defs/b' }, b: { not: { $ref: '#/$defs/a' } } } }],
    ['what it stands in', { properties: { child: { items: { $ref: '#/properties/child' } } } }],
  ])('a $ref to %s is an error, not a hang', (_, schema) => {
    expect(timed(() => refusalOf(() => createSchemaGuard(schema))).code).toBe('INVALID_CONTRACT')
  })

  it('references that double at every step end by their budget', () => {
    const $defs: Record<string, unknown> = { d0: { type: 'string' } }
    for (let i = 1; i < 40; i++)
      $defs[`d${i}`] = { anyOf: [{ not: { $ref: `#/$defs/d${i - 1}` } }, { $ref: `#/$defs/d${i - 1}` }] }
    const guard = createSchemaGuard({ $defs, allOf: [{ $ref: '#/$defs/d39' }] })
    expect(timed(() => guard.check(1))).toMatchObject({ ok: false, message: expect.stringMatching(/too much work/) })
  })

  it('uniqueItems of a large list is answered in time', () => {
    const guard = createSchemaGuard({ uniqueItems: true })
    const list = Array.from({ length: 50_000 }, (_, i) => ({ a: i, b: [i] }))
    expect(timed(() => guard.check(list))).toEqual({ ok: true })
    expect(timed(() => guard.check([...list, { b: [7], a: 7 }]))).toMatchObject({ ok: false, path: '/50000' })
  })

  it('honest schemas accept large honest values', () => {
    const guard = createSchemaGuard({
      type: 'array',
      items: {
        type: 'object',
        properties: { id: { type: 'integer' }, mail: { type: 'string', pattern: '^[^@\\s]+@[^@\\s]+$' } },
      },
    })
    const rows = Array.from({ length: 5_000 }, (_, id) => ({ id, mail: `user${id}@example.com` }))
    expect(timed(() => guard.check(rows))).toEqual({ ok: true })
    expect(createSchemaGuard({ type: 'string', pattern: '^[^\\u0000]*$' }).check('x'.repeat(1 << 20))).toEqual({
      ok: true,
    })
  })
})

describe('createSchemaGuard refuses, and names the place', () => {
  const rows: [name: string, schema: unknown, path: string, issue: RegExp][] = [
    ['nothing', undefined, '', /missing/],
    ['a text', 'string', '', /not a schema/],
    ['a list', [], '', /not a schema/],
    ['what is not JSON data', { default: new Date(0) }, '/default', /Date/],
    ['more than 16 KiB', { description: 'é'.repeat(8_200) }, '', /16384/],
    ['much more than 16 KiB', { description: 'x'.repeat(1e6) }, '', /16384/],
    ['17 levels', negated(16), '/not'.repeat(16), /16 deep/],
    ['17 levels of properties', nest(16), '/properties/a'.repeat(16), /32 levels/],
    ['501 subschemas', { anyOf: Array.from({ length: 500 }, () => true) }, '/anyOf/499', /500 subschemas/],
    ['an older draft', { $schema: 'http://json-schema.org/draft-07/schema#' }, '/$schema', /2020-12/],
    ['a list of items', { items: [{}] }, '/items', /prefixItems/],
    ['a nested $id', { properties: { a: { $id: 'x' } } }, '/properties/a/$id', /root/],
    ['unevaluatedProperties', { unevaluatedProperties: false }, '/unevaluatedProperties', /not supported/],
    ['a reference to a name', { $ref: '#name' }, '/$ref', /#\//],
    ['a reference to nowhere', { $ref: '#/$defs/none' }, '/$ref', /no subschema/],
    ['a reference to what is no schema', { enum: [{}], $ref: '#/enum/0' }, '/$ref', /no subschema/],
    ['a reference that is no pointer', { $ref: '#/a~2' }, '/$ref', /JSON Pointer/],
    ['a reference with a broken escape', { $ref: '#/%zz' }, '/$ref', /JSON Pointer/],
    ['look-ahead', { properties: { p: { pattern: '(?=x)' } } }, '/properties/p/pattern', /RE2/],
    ['a back-reference', { pattern: '(a)\\1' }, '/pattern', /RE2/],
    ['a named back-reference', { pattern: '(?<x>a)\\k<x>' }, '/pattern', /\\k/],
    ['a quotation', { pattern: '\\Q((\\E' }, '/pattern', /\\Q/],
    ['a pattern that unfolds', { pattern: '(?:(?:a{9}){9}){99}' }, '/pattern', /unfold/],
    ['a long pattern', { pattern: 'a'.repeat(1_025) }, '/pattern', /1024 characters/],
    [
      'many patterns',
      { allOf: Array.from({ length: 6 }, (_, i) => ({ pattern: `${i}`.repeat(1_000) })) },
      '/allOf/4/pattern',
      /4096/,
    ],
    [
      'a pattern of property names that cannot run',
      { patternProperties: { '(?!x)': {} } },
      '/patternProperties/(?!x)',
      /RE2/,
    ],
    ['an unknown type', { type: 'date' }, '/type', /"date"/],
    ['a type of another kind', { type: 3 }, '/type', /texts/],
    ['an empty anyOf', { anyOf: [] }, '/anyOf', /one or more/],
    ['a negative bound', { items: { minLength: -1 } }, '/items/minLength', /0 or more/],
    ['a bound in text', { maximum: '3' }, '/maximum', /number/],
    ['multipleOf 0', { multipleOf: 0 }, '/multipleOf', /above 0/],
    ['required that is no list', { required: true }, '/required', /texts/],
    ['properties that are a list', { properties: [] }, '/properties', /object/],
    ['a property that is no schema', { properties: { a: null } }, '/properties/a', /not a schema/],
  ]
  it.each(rows)('%s', (_, schema, path, issue) => {
    const error = refusalOf(() => createSchemaGuard(schema, { what: 'input' }))
    expect(error.code).toBe('INVALID_CONTRACT')
    expect(error.details).toEqual({ path, issue: expect.stringMatching(issue) })
    expect(error.message).toContain(`input${path}: `)
  })

  it('accepts what is just within the bounds', () => {
    expect(createSchemaGuard(nest(15)).check({})).toEqual({ ok: true })
    expect(createSchemaGuard(negated(15)).check({})).toMatchObject({ ok: false })
    expect(createSchemaGuard({ anyOf: Array.from({ length: 499 }, () => true) }).check(1)).toEqual({ ok: true })
    expect(createSchemaGuard({ description: 'x'.repeat(16 * 1024 - 18) }).check(1)).toEqual({ ok: true })
  })
})

describe('a guard', () => {
  const rows: [schema: unknown, value: unknown, path: string, message: RegExp][] = [
    [{ type: 'string' }, 1, '', /must be string, is number/],
    [{ type: ['integer', 'null'] }, 1.5, '', /integer or null/],
    [{ type: 'object' }, [], '', /is array/],
    [{ properties: { a: { items: { type: 'string' } } } }, { a: ['x', 2] }, '/a/1', /string/],
    [{ required: ['a/b'] }, {}, '/a~1b', /missing/],
    [{ required: ['toString'] }, {}, '/toString', /missing/],
    [{ additionalProperties: false, properties: { a: {} } }, { b: 1 }, '/b', /not a known property/],
    [{ additionalProperties: { type: 'string' } }, { b: 1 }, '/b', /string/],
    [{ propertyNames: { maxLength: 2 } }, { abc: 1 }, '/abc', /at most 2/],
    [{ enum: ['a', 'b'] }, 'c', '', /"a", "b"/],
    [{ const: { x: [1] } }, { x: [2] }, '', /must be/],
    [{ minLength: 3 }, '😀😀', '', /at least 3 characters, has 2/],
    [{ minimum: 2 }, 1, '', /at least 2/],
    [{ exclusiveMaximum: 2 }, 2, '', /below 2/],
    [{ multipleOf: 0.1 }, 0.35, '', /multiple of 0.1/],
    [{ contains: { type: 'string' }, minContains: 2 }, ['x', 1], '', /at least 2 such/],
    [{ prefixItems: [{ type: 'string' }], items: false }, ['x', 1], '/1', /not allowed/],
    [{ oneOf: [{ minimum: 1 }, { maximum: 5 }] }, 3, '', /exactly one/],
    [{ anyOf: [{ properties: { a: { type: 'string' } } }, { type: 'null' }] }, { a: 1 }, '/a', /string/],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 1, '', /none of the 2/],
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    [{ if: { type: 'string' }, then: { minLength: 2 }, else: { type: 'null' } }, 'x', '', /at least 2/],
    [{ not: {} }, 1, '', /excluded/],
    [{ dependentRequired: { a: ['b'] } }, { a: 1 }, '/b', /beside "a"/],
    [
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      '/1',
      /twice/,
    ],
    [{ $defs: { 'a/b': { type: 'null' } }, $ref: '#/$defs/a~1b' }, 1, '', /null/],
    [{ type: 'string' }, undefined, '', /missing/],
    [false, 1, '', /not allowed/],
  ]
  it.each(rows)('%j refuses %j', (schema, value, path, message) => {
    expect(createSchemaGuard(schema).check(value)).toEqual({ ok: false, path, message: expect.stringMatching(message) })
  })

  it.each([
    [{ multipleOf: 0.1 }, 0.3],
    [{ multipleOf: 0.01 }, 4.35],
    [{ type: 'integer' }, 1.0],
    [{ maxLength: 2 }, '😀😀'],
    [{ enum: [null, { a: [1, 'x'] }] }, { a: [1, 'x'] }],
    [{ format: 'email' }, 'not an address'],
    [{ type: 'string', unknownKeyword: { type: 'number' } }, 'x'],
    [{ pattern: '^\\p{Lu}\\u0061$' }, 'Éa'],
    [{ additionalProperties: false, patternProperties: { '^x-': {} } }, { 'x-a': 1 }],
    [true, { any: 'thing' }],
  ])('%j accepts %j', (schema, value) => {
    expect(createSchemaGuard(schema).check(value)).toEqual({ ok: true })
  })

  it('keeps its verdicts when its schema is changed behind its back', () => {
    const schema = { properties: { a: { type: 'string' } }, required: ['a'] }
    const guard = createSchemaGuard(schema)
    schema.properties.a.type = 'number'
    expect(guard.check({ a: 'x' })).toEqual({ ok: true })
  })
})
