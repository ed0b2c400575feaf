import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { capability, isCapability } from '../../src/contract/capability.ts'
import { describeCapability } from '../../src/contract/describe.ts'
import type { AnySchema } from '../../src/contract/types.ts'
import { decodeJson, encodeJson } from '../../src/payload/json.ts'
import { createSchemaGuard } from '../../src/schema/interpret.ts'
import { MANIFEST_SCHEMA } from '../../src/schema/manifest-schema.ts'
import { refusalOf } from '../payload/support.ts'

const base = { description: 'Does things.', input: z.object({ a: z.string() }), output: z.object({ b: z.number() }) }
const make = (spec: object, name = 'do_it') => capability(name, { ...base, ...spec } as never)

describe('capability', () => {
  it('makes an immutable contract with defaults', () => {
    const contract = capability('do_it', base)
    expect(contract).toMatchObject({
      name: 'do_it',
      effects: 'once',
      labels: {},
      constraints: {},
      negativeCapabilities: [],
      schemas: { input: base.input, output: base.output, partial: undefined, errors: {} },
    })
    expect(isCapability(contract)).toBe(true)
    expect(isCapability({ ...contract })).toBe(false)
    for (const part of [contract, contract.labels, contract.constraints, contract.schemas, contract.jsonSchemas]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
    expect(Object.isFrozen(contract.jsonSchemas.input.properties)).toBe(true)
  })

  it('publishes the input side of every schema, because the original value is sent', () => {
    const contract = capability('convert', {
      description: 'Converts.',
      input: z.object({ n: z.string().transform(Number), size: z.number().default(1) }),
      output: z.object({
        at: z.codec(z.iso.datetime(), z.date(), { decode: (s) => new Date(s), encode: (d) => d.toISOString() }),
      }),
    })
    expect(contract.jsonSchemas.input).toEqual({
      type: 'object',
      properties: { n: { type: 'string' }, size: { type: 'number', default: 1 } },
      required: ['n'],
    })
    expect(contract.jsonSchemas.output).toMatchObject({ properties: { at: { type: 'string', format: 'date-time' } } })
  })

  it('accepts a schema of another library that is a function, or has only a toJSONSchema method', () => {
    const standard = { version: 1, vendor: 'other', validate: (value: unknown) => ({ value }) }
    const asFunction = Object.assign(() => true, {
      '~standard': { ...standard, jsonSchema: { input: () => ({ type: 'null' }) } },
    })
    const byMethod = {
      '~standard': standard,
      toJSONSchema: ({ io }: { io: string }) => ({ type: 'string', title: io }),
    }
    const contract = make({ input: asFunction, output: byMethod })
    expect(contract.jsonSchemas).toMatchObject({ input: { type: 'null' }, output: { type: 'string', title: 'input' } })
  })

  it('leaves a pattern out that RE2 cannot run, where a format says what is meant', () => {
    const contract = make({ input: z.object({ d: z.iso.duration(), h: z.hostname(), mail: z.email() }) })
    const { properties } = contract.jsonSchemas.input as { properties: Record<string, Record<string, unknown>> }
    expect(properties.d).toEqual({ type: 'string', format: 'duration' })
    expect(properties.h).toEqual({ type: 'string', format: 'hostname' })
    expect(properties.mail).toHaveProperty('pattern')
  })

  it('publishes schemas that other peers can use', () => {
    const contract = make({
      input: z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('a'), id: z.uuid() }),
        z.object({ kind: z.literal('b') }),
      ]),
      errors: { TOO_LONG: z.object({ max_lines: z.int() }) },
    })
    const guard = createSchemaGuard(contract.jsonSchemas.input)
    expect(guard.check({ kind: 'a', id: '2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d' })).toEqual({ ok: true })
    expect(guard.check({ kind: 'a', id: '7' }).ok).toBe(false)
    expect(createSchemaGuard(contract.jsonSchemas.errors.TOO_LONG).check({ max_lines: 1 })).toEqual({ ok: true })
  })

  const nested = (levels: number): AnySchema =>
    levels === 0 ? z.string() : z.object({ a: nested(levels - 1) as z.ZodType })
  const tree = z.object({
    value: z.string(),
    get children() {
      return z.array(tree)
    },
  })
  const rows: [name: string, spec: object, path: string, issue: RegExp][] = [
    [
      'a date',
      { input: z.object({ rows: z.array(z.object({ when: z.date() })) }) },
      '/input/properties/rows/items/properties/when',
      /Date.*text/,
    ],
    [
      'a date in a declared error',
      { errors: { LATE: z.object({ at: z.date() }) } },
      '/errors/LATE/properties/at',
      /Date/,
    ],
    ['a function', { output: z.object({ run: z.function() }) }, '/output/properties/run', /Function/],
    ['a bigint', { input: z.object({ id: z.bigint() }) }, '/input/properties/id', /BigInt/],
    ['undefined', { output: z.undefined() }, '/output', /Undefined.*null/],
    ['void', { output: z.void() }, '/output', /Void.*null/],
    ['a Map', { input: z.object({ m: z.map(z.string(), z.number()) }) }, '/input/properties/m', /Map/],
    ['a Set', { input: z.set(z.string()) }, '/input', /Set/],
    ['NaN', { input: z.nan() }, '/input', /NaN/],
    ['a class', { partial: z.object({ d: z.instanceof(URL) }) }, '/partial/properties/d', /Custom/],
    ['a file', { input: z.object({ f: z.file() }) }, '/input/properties/f', /base64/],
    ['a schema that contains itself', { input: tree }, '/input/properties/children/items/$ref', /#\//],
    ['a schema that contains itself further in', { input: z.object({ tree }) }, '/input', /itself/],
    ['a schema too deep', { input: nested(17) }, '/input', /32 levels|16 deep/],
    ['a schema too large', { output: z.object({ a: z.string().describe('x'.repeat(17_000)) }) }, '/output', /16384/],
    ['a pattern with look-ahead', { input: z.string().regex(/^(?=.*\d)/) }, '/input/pattern', /RE2/],
    ['a plain JSON Schema', { input: { type: 'object' } }, '/input', /not a Standard Schema.*zod/],
    ['no input', { input: undefined }, '/input', /missing/],
    ['no answer', { asks: { question: z.string() } }, '/asks/answer', /missing/],
    ['asks that are text', { asks: 'x' }, '/asks', /question, answer/],
    [
      'a schema without JSON Schema',
      { input: { '~standard': { version: 1, vendor: 'plain', validate: () => ({ value: 1 }) } } },
      '/input',
      /plain.*zod 4/,
    ],
    ['no description', { description: '' }, '/description', /1 to 2048/],
    ['a description of another kind', { description: 1 }, '/description', /text/],
    ['unknown effects', { effects: 'twice' }, '/effects', /idempotent/],
    ['an unknown field', { inputs: 1 }, '/inputs', /not a field/],
    ['an error in lower case', { errors: { too_large: z.string() } }, '/errors/too_large', /TOO_LONG/],
    ['an error of the runtime', { errors: { BUSY: z.string() } }, '/errors/BUSY', /runtime/],
    ['an error without schema', { errors: { TOO_LONG: true } }, '/errors/TOO_LONG', /Standard Schema/],
    ['a label of another kind', { labels: { lang: 1 } }, '/labels/lang', /text/],
    ['a label name', { labels: { Lang: 'ts' } }, '/labels/Lang', /lower-case/],
    ['a fraction of concurrency', { constraints: { maxConcurrency: 0.5 } }, '/constraints/maxConcurrency', /integer/],
    ['a cost level of 6', { constraints: { costLevel: 6 } }, '/constraints/costLevel', /1 to 5/],
    ['a budget of 0', { constraints: { budgetMs: 0 } }, '/constraints/budgetMs', /from 1/],
    [
      'an unknown constraint',
      { constraints: { max_concurrency: 1 } },
      '/constraints/max_concurrency',
      /maxConcurrency/,
    ],
    ['negative capabilities of another kind', { negativeCapabilities: [1] }, '/negativeCapabilities', /texts/],
  ]
  it.each(rows)('refuses %s, and names the place', (_, spec, path, issue) => {
    const error = refusalOf(() => make(spec))
    expect(error.code).toBe('INVALID_CONTRACT')
    expect(String(error.details.path).slice(0, path.length)).toBe(path)
    expect(error.message).toMatch(issue)
    expect(error.message).toContain(`capability do_it: ${path.slice(1)}`)
  })

  it.each([
    ['Review'],
    ['a b'],
    [''],
    ['оps'],
    ['code_review@1'],
    ['code_review@x'],
    ['é'],
    ['x'.repeat(65)],
    ['../x'],
    ['a:b'],
  ])('F-40: refuses the name %j', (name) => {
    expect(refusalOf(() => make({}, name)).code).toBe('INVALID_NAME')
  })

  it('takes a second major, and keeps names of the runtime for it', () => {
    expect(make({}, 'code_review@2').name).toBe('code_review@2')
    expect(refusalOf(() => make({}, 'hermes.manifest')).code).toBe('CAPABILITY_RESERVED')
    expect(refusalOf(() => make({}, 'hermes.x@2')).code).toBe('CAPABILITY_RESERVED')
  })
})

describe('describeCapability', () => {
  const contract = capability('code_review', {
    ...base,
    effects: 'none',
    errors: { TOO_LONG: z.object({ max_lines: z.number() }) },
    labels: { language: ['ts', 'js'], tier: 'gold' },
    constraints: { maxConcurrency: 4, budgetMs: 60_000, costLevel: 2 },
    negativeCapabilities: ['tickets'],
  })

  it('gives the entry of the manifest in wire names', () => {
    expect(describeCapability(contract)).toEqual({
      name: 'code_review',
      description: 'Does things.',
      call_type: 'request',
      effects: 'none',
      input_schema: contract.jsonSchemas.input,
      output_schema: contract.jsonSchemas.output,
      errors: { TOO_LONG: { type: 'object', properties: { max_lines: { type: 'number' } }, required: ['max_lines'] } },
      labels: { language: ['ts', 'js'], tier: 'gold' },
      constraints: { max_concurrency: 4, budget_ms: 60_000, cost_level: 2 },
      negative_capabilities: ['tickets'],
    })
  })

  it('is data that travels, and fits the schema of the manifest', () => {
    const entries = [describeCapability(contract), describeCapability(capability('plain', base))]
    expect(decodeJson(encodeJson(entries))).toEqual(entries)
    const manifest = {
      agent_id: 'a',
      key: 'A'.repeat(43),
      network: 'n',
      serial: 1,
      issued_at: 1,
      expires_at: 2,
      description: '',
      capabilities: entries,
    }
    expect(createSchemaGuard(MANIFEST_SCHEMA).check(manifest)).toEqual({ ok: true })
  })

  it('says how the answer comes', () => {
    expect(describeCapability(make({ yields: z.string() })).call_type).toBe('stream')
    expect(describeCapability(make({ asks: { question: z.string(), answer: z.string() } })).call_type).toBe('task')
  })
})
