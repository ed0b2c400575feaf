import { describe, expect, it } from 'vitest'
import type { PolicyDocument } from '../../src/policy/document.ts'
import { evaluate } from '../../src/policy/evaluate.ts'
import { explainPolicy } from '../../src/policy/explain.ts'
import type { Subject } from '../../src/policy/match.ts'
import { policyOfObject } from '../../src/policy/read.ts'

const agent = (agentId: string, team?: string, ...roles: string[]): Subject => ({
  agentId,
  membership: { ...(team === undefined ? {} : { team }), roles },
})

function judge(serve: PolicyDocument['serve'], capability: string, input: unknown, ...subjects: Subject[]) {
  const asked = subjects.length === 0 ? [agent('pm')] : subjects
  return evaluate(policyOfObject({ serve: serve ?? [] }), {
    side: 'serve',
    subjects: asked,
    capability,
    input: { value: input },
  })
}

describe('who is allowed what', () => {
  it('is nobody anything, where no rule says so', () => {
    expect(judge([], 'pay', {})).toMatchObject({ allowed: false, because: 'no rule', rule: undefined })
    expect(
      evaluate(policyOfObject({ call: [] }), { side: 'serve', subjects: [agent('pm')], capability: 'pay' }).allowed,
    ).toBe(false)
  })

  it('goes by agent id, team and role, each meant by its own name alone', () => {
    const by = (principal: string, subject: Subject) =>
      judge([{ principal, capability: 'pay' }], 'pay', {}, subject).allowed
    expect(by('pm', agent('pm'))).toBe(true)
    expect(by('pm', agent('pm/x'))).toBe(false)
    expect(by('team:finance', agent('pm', 'finance'))).toBe(true)
    expect(by('team:finance', agent('finance'))).toBe(false)
    expect(by('team:finance', agent('pm', 'sales', 'finance'))).toBe(false)
    expect(by('role:approver', agent('pm', 'sales', 'clerk', 'approver'))).toBe(true)
    expect(by('role:approver', agent('approver', 'approver'))).toBe(false)
    expect(by('*', { agentId: 'anyone' })).toBe(true)
    expect(by('role:approver', { agentId: 'anyone' })).toBe(false)
  })

  it.each([
    ['pay', 'pay', true],
    ['pay', 'pay@2', false],
    ['pay', 'payment', false],
    ['pay@2', 'pay@2', true],
    ['pay*', 'payment', true],
    ['report.*', 'report.week', true],
    ['report.*', 'reports', false],
    ['*', 'pay', true],
    ['*', 'event:done', true],
    ['*', 'topic:news', true],
    ['*', 'hermes.flight', false],
    ['hermes.flight', 'hermes.flight', true],
    ['deploy', 'event:deploy', false],
    ['event:deploy', 'event:deploy', true],
    ['event:*', 'event:deploy', true],
    ['event:*', 'topic:deploy', false],
  ])('a rule on %s means %s: %s', (capability, asked, allowed) => {
    expect(judge([{ principal: 'pm', capability }], asked, {}).allowed).toBe(allowed)
  })

  it('leaves to their own guards what every peer offers', () => {
    for (const name of ['hermes.manifest', 'hermes.outcome', 'hermes.task.watch', 'hermes.context']) {
      expect(judge([{ principal: '*', capability: '*', effect: 'deny' }], name, {})).toMatchObject({
        because: 'not judged',
      })
    }
  })

  it('is taken away by an explicit denial, wherever it stands and whoever is meant by it', () => {
    const allow = { principal: 'pm', capability: 'pay' }
    const deny = { principal: 'team:sales', capability: '*', effect: 'deny' } as const
    for (const rules of [
      [allow, deny],
      [deny, allow],
    ]) {
      expect(judge(rules, 'pay', {}, agent('pm', 'sales'))).toMatchObject({
        allowed: false,
        because: 'denied',
        rule: { effect: 'deny' },
      })
      expect(judge(rules, 'pay', {}, agent('pm', 'finance')).allowed).toBe(true)
    }
  })

  it('threat: confused deputy — needs originator and each forwarder allowed', () => {
    const rules = [
      { principal: ['a', 'b', 'c'], capability: 'read' },
      { principal: 'b', capability: 'transfer' },
    ]
    expect(judge(rules, 'transfer', {}, agent('a'), agent('b'))).toMatchObject({
      allowed: false,
      subject: { agentId: 'a' },
    })
    expect(judge(rules, 'transfer', {}, agent('b'), agent('a'))).toMatchObject({
      allowed: false,
      subject: { agentId: 'a' },
    })
    expect(judge(rules, 'read', {}, agent('a'), agent('b'), agent('c')).allowed).toBe(true)
    expect(judge(rules, 'read', {}, agent('a'), agent('b'), agent('x')).allowed).toBe(false)
  })

  it('by shape alone is whatever some input could be allowed', () => {
    const policy = policyOfObject({
      serve: [
        { principal: 'pm', capability: 'pay', constraints: { '/amount': { max: 5 } } },
        { principal: 'pm', capability: 'pay', effect: 'deny', constraints: { '/to': { equals: 'x' } } },
        { principal: 'pm', capability: 'burn' },
        { principal: 'pm', capability: 'burn', effect: 'deny' },
      ],
    })
    const shape = (capability: string) =>
      evaluate(policy, { side: 'serve', subjects: [agent('pm')], capability }).allowed
    expect([shape('pay'), shape('burn'), shape('other')]).toEqual([true, false, false])
  })
})

describe('threat: constraint bypass', () => {
  const within = (constraint: object, input: unknown, pointer = '/domain') =>
    judge([{ principal: 'pm', capability: 'query', constraints: { [pointer]: constraint } }], 'query', input).allowed
  const kept = (constraint: object, input: unknown, pointer = '/domain') =>
    !judge(
      [
        { principal: 'pm', capability: 'query' },
        { principal: 'pm', capability: 'query', effect: 'deny', constraints: { [pointer]: constraint } },
      ],
      'query',
      input,
    ).allowed
  const finance = { equals: 'finance' }

  it.each([
    ['missing', {}],
    ['null', { domain: null }],
    ['no object at all', 'finance'],
    ['a list in the place of the object that complies in one element', [{ domain: 'finance' }, { domain: 'hr' }]],
    ['an empty list', { domain: [] }],
    ['a list with one that complies', { domain: ['finance', 'hr'] }],
    ['a list in a list', { domain: ['finance', ['hr']] }],
    ['one level deeper', { domain: { domain: 'finance' } }],
    ['under another case', { Domain: 'finance' }],
    ['as an object with that name', { domain: { finance: true } }],
    ['as a boxed text', { domain: Object('finance') }],
    ['inherited', Object.create({ domain: 'finance' })],
    [
      'computed when it is looked at',
      {
        get domain() {
          return 'finance'
        },
      },
    ],
    ['in a map', new Map([['domain', 'finance']])],
  ])('a field that is %s is denied by what allows, and by what denies', (_, input) => {
    expect(within(finance, input)).toBe(false)
    expect(kept({ equals: 'hr' }, input)).toBe(true)
  })

  it('what is clearly there and complies passes, as a list too', () => {
    for (const input of [
      { domain: 'finance' },
      { domain: ['finance', 'finance'] },
      [{ domain: 'finance' }],
      { domain: [['finance']] },
    ]) {
      expect(within(finance, input)).toBe(true)
      expect(kept({ equals: 'hr' }, input)).toBe(false)
      expect(kept(finance, input)).toBe(true)
    }
  })

  it.each([
    [{ equals: 5 }, '5'],
    [{ equals: '5' }, 5],
    [{ equals: true }, 'true'],
    [{ equals: null }, 0],
    [{ one_of: [1, 2] }, '1'],
    [{ min: 0 }, '7'],
    [{ max: 5 }, true],
    [{ max: 5 }, Number.NaN],
    [{ prefix: '4' }, 42],
  ])('type confusion: %j is not complied with by %j, nor escaped by it', (constraint, domain) => {
    expect(within(constraint, { domain })).toBe(false)
    expect(kept(constraint, { domain })).toBe(true)
  })

  it('ranges hold at their ends, texts by their beginning, and values of every kind as a whole', () => {
    expect([0, 5, 10, -1, 11].map((domain) => within({ min: 0, max: 10 }, { domain }))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ])
    expect(['内部/报告', '内部', '外部/报告'].map((domain) => within({ prefix: '内部/' }, { domain }))).toEqual([
      true,
      false,
      false,
    ])
    for (const domain of ['', 0, false, null]) expect(within({ one_of: ['', 0, false, null] }, { domain })).toBe(true)
  })

  it('pointers reach into names with "/" and "~", and the whole input', () => {
    expect(within({ equals: 1 }, { 'a/b': { 'c~d': 1 } }, '/a~1b/c~0d')).toBe(true)
    expect(within({ equals: 'x' }, 'x', '')).toBe(true)
    expect(within({ equals: 1 }, { '': 1 }, '/')).toBe(true)
    // A position in a list names nothing, so that it cannot stand for the others.
    expect(within({ equals: 1 }, { list: [1, 2] }, '/list/0')).toBe(false)
  })

  it('a list that holds itself ends in a denial', () => {
    const list: unknown[] = []
    list.push(list)
    expect(within(finance, { domain: list })).toBe(false)
  })
})

describe('an explanation', () => {
  const policy = policyOfObject({
    serve: [
      { principal: 'team:finance', capability: 'pay', constraints: { '/amount': { max: 1000 } } },
      { principal: 'role:intern', capability: '*', effect: 'deny', constraints: { '/urgent': { equals: true } } },
      { principal: 'other', capability: 'pay' },
    ],
  })
  const pm = agent('pm', 'finance', 'intern')

  it('names the decision, the rules about it, and what each constraint found', () => {
    const request = { side: 'serve', subjects: [pm], capability: 'pay', input: { value: { amount: 5000 } } } as const
    expect(explainPolicy(policy, request).split('\n')).toEqual([
      '✗ pay denied, policy: serve[1]: a rule denies it to pm (team:finance, role:intern)',
      'pm (team:finance, role:intern): 2 rules about pay',
      '  policy: serve[0] allow if /amount does not hold',
      '  policy: serve[1] deny if /urgent cannot be told (missing, of another type, or a mixed list): counts as holding',
    ])
  })

  it('tells what is allowed, what no rule is about, and what is not judged', () => {
    const ask = (capability: string, value: unknown) =>
      explainPolicy(policy, { side: 'serve', subjects: [pm], capability, input: { value } })
    expect(ask('pay', { amount: 5, urgent: false })).toMatch(/^✓ pay allowed, policy: serve\[0\]/)
    expect(explainPolicy(policy, { side: 'serve', subjects: [agent('x')], capability: 'pay' })).toMatch(
      /^✗ pay denied, policy: no rule allows it to x/,
    )
    expect(ask('hermes.manifest', {})).toBe('✓ hermes.manifest is not judged by policy')
    expect(explainPolicy(policy, { side: 'call', subjects: [pm], capability: 'pay' })).toBe(
      '✓ pay is not judged by policy',
    )
  })
})
