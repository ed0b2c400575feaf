import { seededRandom } from '@hermes-peer/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULTS } from '../../src/defaults.ts'
import { decide, rerun } from '../../src/routing/decision.ts'
import { explain } from '../../src/routing/explain.ts'
import type { Ask, Facts } from '../../src/routing/facts.ts'
import type { DecisionRecord } from '../../src/routing/record.ts'
import { routing } from './scene.ts'
import { entry, facts } from './support.ts'

const one: fc.Arbitrary<Omit<Facts, 'agentId'>> = fc
  .record({
    load: fc.nat(100),
    calls: fc.nat(30),
    inFlight: fc.nat(4),
    places: fc.constantFrom(1, 2, 4),
    status: fc.constantFrom('online' as const, 'suspect' as const, 'offline' as const),
    label: fc.constantFrom('ts', 'py'),
    p50Ms: fc.option(fc.nat(900), { nil: undefined }),
    probe: fc.boolean(),
  })
  .map(({ load, calls, inFlight, places, status, label, p50Ms, probe }) =>
    facts('', {
      load,
      places,
      status,
      labels: { language: label },
      measured: { calls, inFlight, p50Ms },
      breaker: probe ? { state: 'half-open', because: 'it failed', probing: false } : { state: 'closed' },
    }),
  )
const ASK: Ask = { capability: 'work', where: { language: 'ts' }, path: [] }
const recordOf = (list: readonly Omit<Facts, 'agentId'>[], seed: number): DecisionRecord => {
  const all = list.map((more, index) => ({ ...more, agentId: `a${index}` }))
  return decide(ASK, all, { random: seededRandom(seed), tunables: DEFAULTS }).record(0)
}
const written = (record: DecisionRecord) => JSON.parse(JSON.stringify(record)) as DecisionRecord

describe('the record of a decision', () => {
  it('written as JSON and read back gives the same choice', () => {
    fc.assert(
      fc.property(fc.array(one, { maxLength: 8 }), fc.nat(), (list, seed) => {
        const record = recordOf(list, seed)
        const again = rerun(written(record))
        expect(again.same).toBe(true)
        expect(again.chosen).toEqual(record.chosen)
      }),
      { numRuns: 200 },
    )
  })

  it('tells when another choice comes out: other facts, other draws', () => {
    const list = [facts('', { load: 10 }), facts('', { load: 11 })].map((each) => ({
      ...each,
      labels: { language: 'ts' },
    }))
    const record = recordOf(list, 1)
    expect(record.chosen).toHaveLength(2)
    const [first] = record.chosen
    const offline = record.facts.map((each) =>
      each.agentId === first?.agentId ? { ...each, status: 'offline' as const } : each,
    )
    expect(rerun({ ...record, facts: offline }).same).toBe(false)
    const choices = [0.01, 0.99].map((draw) => rerun({ ...record, draws: record.draws.map(() => draw) }).same)
    expect(choices).toContain(false)
  })

  it('holds no input, and is refused where it is none', async () => {
    const { router } = routing([entry('a', { offers: [{ name: 'work' }] })])
    let record: DecisionRecord | undefined
    await router.choose(
      { capability: 'work', path: [], input: { value: { secret: 'hunter2' }, schema: undefined } },
      {
        signal: new AbortController().signal,
        decided: (made) => {
          record = made
        },
      },
    )
    expect(JSON.stringify(record)).not.toContain('hunter2')
    for (const none of [undefined, {}, { version: 2 }, [], 'x'])
      expect(() => rerun(none as never)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })
})

describe('explain', () => {
  const scene = () => {
    const offers = (domain: string) => [{ name: 'data_query', labels: { data_domain: domain } }]
    const made = routing([
      entry('erp-query', { load: 12, offers: offers('finance') }),
      entry('crm-query', { offers: offers('tickets') }),
      entry('old-erp', { status: 'offline', offers: offers('finance') }),
    ])
    for (let i = 0; i < 210; i++) {
      made.measurements.begin('erp-query', 'data_query')
      made.measurements.end('erp-query', 'data_query', i !== 180, 84)
    }
    return made
  }
  /** The time of day depends on where the test runs. */
  const timeless = (text: string) => text.replaceAll(/\d\d:\d\d/g, 'HH:MM')

  it('of a choice that succeeded', async () => {
    const { rank } = scene()
    const text = explain(await rank({ capability: 'data_query', where: { data_domain: 'finance' } }))
    expect(timeless(text)).toMatchInlineSnapshot(`
      "✓ erp-query  load 12, p50 84 ms, 99.5 % of 210 calls (measured here)
      ✗ crm-query  data_domain is tickets
      ✗ old-erp    offline since HH:MM"
    `)
  })

  it('of a choice that failed, from its error', async () => {
    const { refusal } = scene()
    const error = await refusal({ capability: 'data_query', where: { data_domain: 'logs' } })
    expect(timeless(explain(error))).toMatchInlineSnapshot(`
      "✗ erp-query  data_domain is finance
      ✗ crm-query  data_domain is tickets
      ✗ old-erp    offline since HH:MM"
    `)
  })

  it('of an intent names the capabilities', async () => {
    const { rank } = routing([
      entry('desk', { offers: [{ name: 'ticket_search', description: 'Searches tickets.' }] }),
      entry('triage', { offers: [{ name: 'ticket_classify', description: 'Classifies tickets by urgency.' }] }),
    ])
    const text = explain(await rank({ capability: undefined as never, intent: 'classify a ticket' }))
    expect(text).toMatchInlineSnapshot(`
      "✓ triage#ticket_classify  means it: 100 % of the words, load 0, not measured yet, no calls from here yet
      ✗ desk#ticket_search      means something else: 21 % of the words, 30 % needed"
    `)
  })

  it('of nothing says so, and refuses what is no choice', () => {
    expect(explain([])).toBe('nobody is known that could serve it')
    expect(() => explain('x' as never)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })
})
