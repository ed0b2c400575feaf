import { describe, expect, it } from 'vitest'
import type { PolicyDocument } from '../../src/policy/document.ts'
import { policyOfObject } from '../../src/policy/read.ts'
import { parsePolicy } from '../../src/policy/source.ts'
import { caught } from '../identity/support.ts'

const GOOD = `# who may use what of the ledger
version: 1
serve:
  - principal: team:finance
    capability: [pay, "report.*"]
    constraints:
      /amount: { min: 0, max: 1000 }
      /currency: { one_of: [EUR, USD] }
    max_qps: 10
  - principal: "*"
    capability: topic:news
  - principal: role:intern
    capability: pay
    effect: deny
call:
  - principal: bank/gateway
    capability: transfer
`

async function refusal(text: string | Uint8Array) {
  try {
    await parsePolicy(text)
  } catch (error) {
    return error as { code: string; message: string; hint: string; details: Record<string, unknown> }
  }
  throw new Error('it was read')
}

describe('a policy file', () => {
  it('is read with the line of each rule', async () => {
    const policy = await parsePolicy(GOOD)
    expect(policy.serve.map(({ at, effect }) => [at, effect])).toEqual([
      ['policy.yaml:4', 'allow'],
      ['policy.yaml:10', 'allow'],
      ['policy.yaml:12', 'deny'],
    ])
    expect(policy.serve[0]).toMatchObject({
      maxQps: 10,
      capabilities: [{ text: 'pay' }, { text: 'report.', open: true }],
    })
    expect(policy.call?.map(({ at }) => at)).toEqual(['policy.yaml:16'])
    expect(policy.mode).toBe('enforce')
  })

  it('may be JSON, with lines all the same', async () => {
    const text = '{\n "mode": "audit",\n "serve": [\n  {"principal": "pm", "capability": "pay"}]}'
    const policy = await parsePolicy(text, 'policy.json')
    expect(policy.serve[0]?.at).toBe('policy.json:4')
    expect(policy.mode).toBe('audit')
  })

  it('F-45 gives the same with CRLF and with a byte order mark', async () => {
    const plain = JSON.stringify(await parsePolicy(GOOD))
    expect(JSON.stringify(await parsePolicy(GOOD.replaceAll('\n', '\r\n')))).toBe(plain)
    expect(JSON.stringify(await parsePolicy(`\uFEFF${GOOD}`))).toBe(plain)
    expect(JSON.stringify(await parsePolicy(Buffer.from(`\uFEFF${GOOD}`)))).toBe(plain)
  })

  it('F-45 refuses UTF-16, with a hint', async () => {
    for (const bytes of [Buffer.from(`\uFEFF${GOOD}`, 'utf16le'), Buffer.from(`\uFEFF${GOOD}`, 'utf16le').swap16()]) {
      expect(await refusal(bytes)).toMatchObject({ code: 'INVALID_POLICY', hint: expect.stringContaining('UTF-16') })
    }
    expect(await refusal(Buffer.from([0x73, 0xff, 0xfe]))).toMatchObject({ message: expect.stringContaining('UTF-8') })
  })

  const ruleWith = (more: string) => `serve:\n  - principal: pm\n    capability: pay\n${more}`
  it.each([
    ['nothing', ' \n', /is empty/],
    ['no YAML', 'serve: [', /policy\.yaml:1: .*is not YAML/],
    ['a text', 'hello', /policy\.yaml:1: the policy must be an object with version, mode, serve, call/],
    ['a field that is misspelt', 'serv: []', /policy\.yaml:1: .*"serv".*known are version, mode, serve, call/],
    ['another version', 'version: 1.10\nserve: []', /policy\.yaml:1: version must be 1/],
    ['a mode that is none', 'serve: []\nmode: on', /policy\.yaml:2: mode must be enforce or audit/],
    ['rules that are no list', 'serve: pm', /policy\.yaml:1: serve must be a list/],
    ['a rule that is no object', 'serve:\n  - pm', /policy\.yaml:2: serve\[0\] must be an object/],
    ['a rule without principal', 'serve:\n  - capability: pay', /policy\.yaml:2: serve\[0\]\.principal is missing/],
    ['a rule without capability', 'serve:\n\n  - principal: pm', /policy\.yaml:3: serve\[0\]\.capability is missing/],
    [
      'a number as principal',
      'serve:\n  - capability: pay\n    principal: 0123',
      /policy\.yaml:3: .*principal must be a text; write it in quotes/,
    ],
    [
      'a principal that looks like another',
      'serve:\n  - capability: pay\n    principal: оps',
      /policy\.yaml:3: .*no agent id/,
    ],
    ['a principal in upper case', 'serve:\n  - capability: pay\n    principal: OPS', /policy\.yaml:3: .*no agent id/],
    [
      'a principal with a space at its end',
      'serve:\n  - capability: pay\n    principal: "ops "',
      /policy\.yaml:3: .*no agent id/,
    ],
    ['a Chinese principal', 'serve:\n  - capability: pay\n    principal: 财务', /policy\.yaml:3: .*no agent id/],
    [
      'a kind of principal that is none',
      'serve:\n  - capability: pay\n    principal: group:a',
      /policy\.yaml:3: .*team:<name>/,
    ],
    [
      'a pattern in the middle',
      'serve:\n  - principal: pm\n    capability: a*b',
      /policy\.yaml:3: .*does not stand at its end/,
    ],
    [
      'a major that is never written',
      'serve:\n  - principal: pm\n    capability: pay@1',
      /policy\.yaml:3: .*not the name/,
    ],
    [
      'what the runtime guards itself',
      'serve:\n  - principal: pm\n    capability: hermes.manifest',
      /policy\.yaml:3: .*only hermes\.flight/,
    ],
    [
      'all of the runtime',
      'serve:\n  - principal: pm\n    capability: hermes.*',
      /policy\.yaml:3: .*only hermes\.flight/,
    ],
    ['an empty list', 'serve:\n  - principal: []\n    capability: pay', /policy\.yaml:2: .*1 to 256/],
    ['an effect that is none', ruleWith('    effect: permit'), /policy\.yaml:4: .*effect must be allow or deny/],
    [
      'YAML 1.1 that means something else',
      ruleWith('    effect: no'),
      /policy\.yaml:4: .*effect must be allow or deny/,
    ],
    [
      'a limit of a denial',
      ruleWith('    effect: deny\n    max_qps: 5'),
      /policy\.yaml:5: .*max_qps limits what a rule allows/,
    ],
    ['a limit of zero', ruleWith('    max_qps: 0'), /policy\.yaml:4: .*positive number/],
    ['half a place', ruleWith('    max_concurrency: 0.5'), /policy\.yaml:4: .*positive whole number/],
    ['an infinite limit', ruleWith('    max_qps: .inf'), /policy\.yaml:4: .*positive number/],
    [
      'a limit of calls',
      'call:\n  - principal: pm\n    capability: pay\n    max_qps: 5',
      /policy\.yaml:4: .*belongs to serve/,
    ],
    [
      'constraints that are a list',
      ruleWith('    constraints: [a]'),
      /policy\.yaml:4: .*constraints must be an object/,
    ],
    [
      'a pointer that is none',
      ruleWith('    constraints:\n      amount: { max: 5 }'),
      /policy\.yaml:5: .*begins with "\/"/,
    ],
    [
      'an unknown constraint',
      ruleWith('    constraints:\n      /amount: { maximum: 5 }'),
      /policy\.yaml:5: .*equals, one_of, min, max, prefix/,
    ],
    [
      'a constraint that says nothing',
      ruleWith('    constraints:\n      /amount: {}'),
      /policy\.yaml:5: .*says nothing/,
    ],
    [
      'a range that nothing fits',
      ruleWith('    constraints:\n      /amount: { min: 5, max: 4 }'),
      /policy\.yaml:5: .*nothing could hold/,
    ],
    ['an empty choice', ruleWith('    constraints:\n      /currency: { one_of: [] }'), /policy\.yaml:5: .*1 to 256/],
    [
      'a date, which is text',
      ruleWith('    constraints:\n      /day: { min: 2026-01-01 }'),
      /policy\.yaml:5: .*must be a number/,
    ],
    ['the same name twice', ruleWith('    capability: report'), /policy\.yaml:4: .*has the same name twice/],
    ['a prototype', ruleWith('    __proto__: { effect: allow }'), /policy\.yaml:4: .*"__proto__".*not known/],
    ['an alias', 'serve:\n  - &a { principal: pm, capability: pay }\n  - *a', /policy\.yaml:3: .*anchor/],
    ['a merge', 'serve:\n  - &a { principal: pm, capability: pay }\n  - <<: *a', /policy\.yaml:3: /],
    ['a name that is no text', 'serve: []\n1: 2', /policy\.yaml:2: .*no text/],
    ['two documents', 'serve: []\n---\nserve: []', /policy\.yaml:2: .*not YAML/],
    ['a tag', 'serve: !!js/function "x"', /policy\.yaml:1: /],
    ['a name with control characters', '"a\\u202e\\n": 1', /policy\.yaml:1: .*"a\\u\{202e\}\\n"/],
  ])('refuses %s, naming line and field', async (_, text, message) => {
    const error = await refusal(text)
    expect(error.code).toBe('INVALID_POLICY')
    expect(error.message).toMatch(message)
  })

  it('of anchors in one another is refused at once, and not expanded', async () => {
    const levels = Array.from({ length: 10 }, (_, n) => `a${n}: &a${n} [${`*a${n - 1},`.repeat(n === 0 ? 0 : 9)}1]`)
    expect((await refusal(levels.join('\n'))).message).toMatch(/policy\.yaml:\d+: /)
  })

  it('of ten thousand rules is read, and one of more is not', async () => {
    const rules = (count: number) => ({
      serve: Array.from({ length: count }, (_, n) => ({ principal: `agent-${n}`, capability: 'pay' })),
    })
    expect((await parsePolicy(rules(10_000))).serve).toHaveLength(10_000)
    expect(caught(() => policyOfObject(rules(10_001))).message).toMatch(/10001 rules, the limit is 10000/)
  })
})

describe('a policy given as an object', () => {
  it('tells its rules by their place', () => {
    const policy = policyOfObject({ serve: [{ principal: '*', capability: '*' }] })
    expect(policy.serve[0]?.at).toBe('policy: serve[0]')
    expect(policy.call).toBeUndefined()
  })

  it('names the field that is wrong', () => {
    const wrong = { serve: [{ principal: 'pm', capability: 'pay', max_qps: '5' }] } as unknown as PolicyDocument
    expect(caught(() => policyOfObject(wrong))).toMatchObject({
      code: 'INVALID_POLICY',
      message: 'policy: serve[0].max_qps must be a positive number',
      details: { field: 'serve[0].max_qps' },
    })
  })

  it('does not change when the object does later', () => {
    const one_of: unknown[] = ['EUR']
    const document = { serve: [{ principal: 'pm', capability: 'pay', constraints: { '/currency': { one_of } } }] }
    const policy = policyOfObject(document as PolicyDocument)
    one_of.push('CHF')
    expect(policy.serve[0]?.constraints[0]?.constraint).toEqual({ one_of: ['EUR'] })
  })

  it('of a shape without end is refused', () => {
    const endless: Record<string, unknown> = {}
    endless.serve = endless
    expect(caught(() => policyOfObject(endless as PolicyDocument)).message).toMatch(/nested too deeply/)
  })
})
