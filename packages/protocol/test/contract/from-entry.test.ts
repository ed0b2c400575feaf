import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { capability } from '../../src/contract/capability.ts'
import { checkAgainst } from '../../src/contract/check.ts'
import { describeCapability } from '../../src/contract/describe.ts'
import { type CapabilityDraft, capabilityFrom } from '../../src/contract/from-entry.ts'
import type { Capability } from '../../src/contract/types.ts'
import { refusalOf } from '../payload/support.ts'

const text = { type: 'string' }
const draft: CapabilityDraft = { name: 'do_it', description: '做事。', input_schema: text, output_schema: {} }
const from = (fields: object): Capability => capabilityFrom({ ...draft, ...fields } as CapabilityDraft)

const written: Capability[] = [
  capability('plain', { description: 'Plain.', input: z.object({ a: z.string().max(3) }), output: z.number() }),
  capability('rich@2', {
    description: '找出并修复 🔧',
    input: z.string(),
    output: z.array(z.string()),
    partial: z.object({ done: z.number() }),
    asks: { question: z.object({ plan: z.string() }), answer: z.boolean() },
    errors: { TOO_LONG: z.object({ most: z.number() }) },
    effects: 'none',
    labels: { language: ['zh', 'en'], area: '上海' },
    constraints: { maxConcurrency: 2, budgetMs: 1000, costLevel: 5, p99Ms: 250 },
    negativeCapabilities: ['不改测试'],
  }),
  capability('streamed', { description: 'Streams.', input: z.string(), output: z.null(), yields: z.string() }),
]

describe('a contract read from an entry', () => {
  it.each(written)('$name describes itself as the contract in code does', (contract) => {
    const entry = describeCapability(contract)
    expect(describeCapability(capabilityFrom(structuredClone(entry)))).toEqual(entry)
  })

  it('has the defaults of a contract in code where it says nothing', () => {
    expect(from({})).toMatchObject({ effects: 'once', labels: {}, constraints: {}, negativeCapabilities: [] })
    expect(describeCapability(from({})).call_type).toBe('request')
  })

  it('checks values by the JSON Schema, and names the place', () => {
    const contract = from({ input_schema: { type: 'object', properties: { 'a/b': { type: 'array', items: text } } } })
    expect(checkAgainst(contract.schemas.input, { 'a/b': ['x'] }, 'input')).toEqual({ 'a/b': ['x'] })
    expect(refusalOf(() => checkAgainst(contract.schemas.input, { 'a/b': ['x', 1] }, 'input'))).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { path: '/a~1b/1' },
    })
  })

  it('accepts anything where an entry streams or asks and does not say what', () => {
    expect(describeCapability(from({ call_type: 'stream' }))).toMatchObject({ call_type: 'stream', yields_schema: {} })
    expect(describeCapability(from({ call_type: 'task' }))).toMatchObject({
      call_type: 'task',
      question_schema: {},
      answer_schema: {},
    })
  })

  it.each<[string, object, string, string]>([
    ['no description', { description: undefined }, 'INVALID_CONTRACT', '/description'],
    ['no input', { input_schema: undefined }, 'INVALID_CONTRACT', '/input_schema'],
    ['a schema that is a text', { output_schema: 'string' }, 'INVALID_CONTRACT', '/output_schema'],
    ['a broken schema', { input_schema: { items: { type: 'texts' } } }, 'INVALID_CONTRACT', '/input_schema/items/type'],
    ['a broken error', { errors: { BAD: { type: 7 } } }, 'INVALID_CONTRACT', '/errors/BAD/type'],
    ['a name of an error', { errors: { bad: {} } }, 'INVALID_CONTRACT', '/errors/bad'],
    ['errors in a list', { errors: [] }, 'INVALID_CONTRACT', '/errors'],
    ['an unknown field', { inputs: {} }, 'INVALID_CONTRACT', '/inputs'],
    ['a call type', { call_type: 'batch' }, 'INVALID_CONTRACT', '/call_type'],
    ['effects', { effects: 'twice' }, 'INVALID_CONTRACT', '/effects'],
    ['a bound', { constraints: { cost_level: 6 } }, 'INVALID_CONTRACT', '/constraints/cost_level'],
    ['a bound as code has it', { constraints: { costLevel: 3 } }, 'INVALID_CONTRACT', '/constraints/costLevel'],
    ['constraints in a list', { constraints: [] }, 'INVALID_CONTRACT', '/constraints'],
    ['negatives', { negative_capabilities: 'none' }, 'INVALID_CONTRACT', '/negative_capabilities'],
    ['a label', { labels: { Area: 'x' } }, 'INVALID_CONTRACT', '/labels/Area'],
    ['pieces of a request', { call_type: 'request', yields_schema: {} }, 'INVALID_CONTRACT', '/yields_schema'],
    ['a question of a stream', { call_type: 'stream', question_schema: {} }, 'INVALID_CONTRACT', '/question_schema'],
    ['a question without answer', { question_schema: {} }, 'INVALID_CONTRACT', '/question_schema'],
    ['an answer without question', { answer_schema: {} }, 'INVALID_CONTRACT', '/answer_schema'],
  ])('refuses %s', (_, fields, code, path) => {
    const refusal = refusalOf(() => from(fields))
    expect(refusal).toMatchObject({ code, details: { path } })
    expect(refusal.message).toContain('do_it')
  })

  it('refuses what is no capability', () => {
    expect(refusalOf(() => from({ name: 'Do It' })).code).toBe('INVALID_NAME')
    expect(refusalOf(() => from({ name: 'hermes.outcome' })).code).toBe('CAPABILITY_RESERVED')
    expect(refusalOf(() => capabilityFrom([] as never)).code).toBe('INVALID_CONTRACT')
    expect(refusalOf(() => capabilityFrom(null as never)).code).toBe('INVALID_CONTRACT')
  })
})
