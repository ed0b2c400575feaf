import { describe, expect, it } from 'vitest'
import { describeCapability } from '../../src/contract/describe.ts'
import { type CapabilityDraft, capabilityFrom } from '../../src/contract/from-entry.ts'
import { lintManifest } from '../../src/documents/lint-manifest.ts'

const text = { type: 'object', properties: { text: { type: 'string' } } }
const sound: CapabilityDraft = {
  name: 'log_anomaly_detect',
  description: 'Finds unusual templates in lines of a server log and counts how often each occurs.',
  input_schema: text,
  output_schema: { type: 'array', items: text },
  constraints: { max_concurrency: 4, budget_ms: 60_000 },
  negative_capabilities: ['does not handle non-log text'],
}
const chinese: CapabilityDraft = {
  ...sound,
  name: 'ticket_classify',
  description: '读取客户工单的标题和正文，返回类别与紧急程度。',
  negative_capabilities: ['不处理日志'],
}
const lint = (...drafts: object[]) =>
  lintManifest(drafts.map((fields) => describeCapability(capabilityFrom({ ...sound, ...fields }))))
const rules = (...drafts: object[]) => lint(...drafts).map(({ path, rule }) => `${path} ${rule}`)

describe('advice on a manifest', () => {
  it('has none for sound capabilities, in any language', () => {
    expect(lint({}, chinese)).toEqual([])
  })

  it.each<[string, object, string]>([
    ['the name again', { description: 'Log anomaly detect.' }, '/0/description vague'],
    ['one word', { description: 'Logs' }, '/0/description vague'],
    ['the name again, in Chinese', { description: '检测' }, '/0/description vague'],
    ['a boast', { description: 'The best finder of unusual lines in server logs.' }, '/0/description boasting'],
    [
      'a boast without object',
      { description: 'Answers any question about server logs you may have.' },
      '/0/description boasting',
    ],
    ['a Chinese boast', { description: '功能强大的日志分析工具，可以处理任何问题。' }, '/0/description boasting'],
    ['an open input', { input_schema: {} }, '/0/input_schema open-schema'],
    ['an object of anything', { input_schema: { type: 'object', description: 'x' } }, '/0/input_schema open-schema'],
    ['no properties', { output_schema: { type: 'object', properties: {} } }, '/0/output_schema open-schema'],
    ['no bounds', { constraints: {} }, '/0/constraints no-bounds'],
    ['one bound of two', { constraints: { budget_ms: 1000 } }, '/0/constraints no-bounds'],
    ['no negatives', { negative_capabilities: [] }, '/0/negative_capabilities no-negatives'],
  ])('is given for %s', (_, fields, warning) => {
    expect(rules(fields)).toEqual([warning])
  })

  it.each<[string, object]>([
    ['a free map', { input_schema: { type: 'object', additionalProperties: { type: 'string' } } }],
    ['a bare type', { input_schema: { type: 'string' } }],
    ['a choice', { input_schema: { enum: ['a', 'b'] } }],
    [
      'a word that only looks like a boast',
      { description: 'Reads the bestiary of a game and returns its animals by area.' },
    ],
  ])('is not given for %s', (_, fields) => {
    expect(lint(fields)).toEqual([])
  })

  it('names what two capabilities have in common, at the second one', () => {
    expect(rules({}, { name: 'log_scan', description: `${sound.description} Fast.` })).toEqual([
      '/1/description look-alike',
    ])
    expect(lint({}, { name: 'log_scan' })[0]?.message).toContain('reads like log_anomaly_detect')
  })

  it('says which bound is missing', () => {
    expect(lint({ constraints: { budget_ms: 1000 } })[0]?.message).toContain('says no max_concurrency;')
    expect(lint({ constraints: {} })[0]?.message).toContain('no max_concurrency and no budget_ms')
  })
})
