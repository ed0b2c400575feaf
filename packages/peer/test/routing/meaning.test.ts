import { describe, expect, it } from 'vitest'
import { named, provider, routing } from './scene.ts'
import { entry, type Offered } from './support.ts'

const business: Offered = {
  name: 'data_query',
  description: 'Answers questions about business data: orders, revenue and margin.',
  labels: { data_domain: 'finance' },
}
const tickets: Offered = {
  name: 'data_query',
  description: 'Searches support tickets by status, assignee and customer.',
  labels: { data_domain: 'tickets' },
}
const logs: Offered = {
  name: 'log_anomaly_detect',
  description: 'Finds anomalies in log lines.',
  negatives: ['does not handle non-log text'],
}
const both = () => [entry('erp-query', { offers: [business] }), entry('crm-query', { offers: [tickets], load: 0 })]

describe('two capabilities of one name', () => {
  it.each([
    [{ where: { data_domain: 'finance' } }, 'erp-query'],
    [{ where: { data_domain: 'tickets' } }, 'crm-query'],
    [{ intent: 'revenue and margin of last quarter' }, 'erp-query'],
    [{ intent: 'tickets that are assigned to Maria' }, 'crm-query'],
  ])('%j picks the right one, and no other to fail over to', async (more, right) => {
    for (let seed = 0; seed < 10; seed++) {
      const { choose } = routing(both(), seed)
      expect(named(await choose({ capability: 'data_query', ...more }))).toEqual([right])
    }
  })

  it('in Chinese', async () => {
    const { choose } = routing([
      entry('erp', { offers: [{ name: 'data_query', description: '查询订单、销售额和毛利等业务数据。' }] }),
      entry('crm', { offers: [{ name: 'data_query', description: '按状态、负责人和客户检索客服工单。' }] }),
    ])
    expect(named(await choose({ capability: 'data_query', intent: '上个月的销售额' }))).toEqual(['erp'])
    expect(named(await choose({ capability: 'data_query', intent: '张伟负责的工单' }))).toEqual(['crm'])
  })

  it('are both refused when the wish means neither, and each is told', async () => {
    const error = await routing(both()).refusal({ capability: 'data_query', intent: 'the weather in Oslo' })
    expect(error.code).toBe('NO_CANDIDATE')
    expect(error.details.candidates).toEqual([
      { agent_id: 'erp-query', reason: 'means something else: 0 % of the words, 30 % needed' },
      { agent_id: 'crm-query', reason: 'means something else: 0 % of the words, 30 % needed' },
    ])
  })

  it('do not stand in for one another when the right one is offline', async () => {
    const [erp, crm] = both()
    const { refusal } = routing([{ ...(erp as never as object), status: 'offline' } as never, crm as never])
    const error = await refusal({ capability: 'data_query', intent: 'revenue and margin' })
    expect(error.code).toBe('NO_CANDIDATE')
  })

  it('where all describe it alike the name has said what is meant', async () => {
    const { choose } = routing([provider('a'), provider('b')])
    expect(named(await choose({ intent: 'make it so' })).sort()).toEqual(['a', 'b'])
  })
})

describe('what an agent says that it does not do', () => {
  it.each(['find anomalies in these tickets', '在这些工单里找异常', 'detect anomalies in chat messages'])(
    'log analysis is not chosen for: %s',
    async (intent) => {
      for (const capability of ['log_anomaly_detect', undefined]) {
        const { rank } = routing([entry('log-insight', { offers: [logs] })])
        const asked = await rank({ intent, ...(capability ? { capability } : { capability: undefined as never }) })
        expect(asked.filter(({ usable }) => usable)).toEqual([])
      }
    },
  )

  it('is told as the reason', async () => {
    const { rank } = routing([entry('log-insight', { offers: [logs] })])
    const [one] = await rank({ capability: 'log_anomaly_detect', intent: 'anomalies in tickets' })
    expect(one?.reasons).toEqual(['says that it does not do this: "does not handle non-log text"'])
  })

  it.each([
    'Does not read tickets.',
    "Doesn't read tickets.",
    "Can't read tickets.",
    'Won’t read tickets.',
    "It isn't for tickets.",
    'Cannot read tickets.',
  ])('also counts where it stands in the description, and not as a word that it has: %s', async (limit) => {
    const described = { name: 'scan', description: `Finds anomalies in log lines. ${limit}` }
    const { rank } = routing([entry('x', { offers: [described] })])
    expect((await rank({ capability: 'scan', intent: 'read the tickets' }))[0]?.usable).toBe(false)
    expect((await rank({ capability: 'scan', intent: 'anomalies in log lines' }))[0]?.usable).toBe(true)
  })

  it('comes into a reason as one plain line, whatever another agent has written', async () => {
    const evil = `\u001b[31mtickets\u202e\n${'x'.repeat(300)}`
    const { rank } = routing([entry('x', { offers: [{ name: 'work', labels: { kind: evil } }] })])
    const [one] = await rank({ where: { kind: 'y' } })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(one?.reasons[0]).not.toMatch(/[\u0000-\u001f\u202e]/)
    expect(one?.reasons[0]?.length).toBeLessThan(150)
  })
})

describe('an intent alone', () => {
  const offers = [
    entry('erp-query', { offers: [business, { name: 'invoice_extract', description: 'Reads scanned invoices.' }] }),
    entry('log-insight', { offers: [logs] }),
    entry('unknown', { capabilities: ['weather_forecast'] }),
  ]
  const by = (intent: string) => ({ capability: undefined as never, intent })

  it('finds agent and capability', async () => {
    const { choose } = routing(offers)
    expect(await choose(by('anomalies in a log'))).toMatchObject([
      { agentId: 'log-insight', capability: 'log_anomaly_detect' },
    ])
    expect(await choose(by('read this invoice'))).toMatchObject([
      { agentId: 'erp-query', capability: 'invoice_extract' },
    ])
  })

  it('takes the name alone where the manifest is not known', async () => {
    expect(await routing(offers).choose(by('weather forecast'))).toMatchObject([{ capability: 'weather_forecast' }])
  })

  it('names nobody where nobody fits, and says what was wanted', async () => {
    const error = await routing(offers).refusal(by('book a flight to Lisbon'))
    expect(error.code).toBe('NO_CANDIDATE')
    expect(error.message).toContain('"book a flight to Lisbon"')
  })
})

describe('an SLA', () => {
  const measure = ({ measurements }: ReturnType<typeof routing>, agent: string, ms: number, calls: number) => {
    for (let i = 0; i < calls; i++) {
      measurements.begin(agent, 'work')
      measurements.end(agent, 'work', true, ms)
    }
  }

  it('leaves out whoever is measured to break it, until what was measured is old', async () => {
    const scene = routing([provider('slow'), provider('fast'), provider('new')])
    measure(scene, 'fast', 20, 30)
    measure(scene, 'slow', 20, 18)
    measure(scene, 'slow', 900, 1)
    expect(named(await scene.choose({ sla: { p99Ms: 500 } })).sort(), '19 calls say nothing').toContain('slow')
    measure(scene, 'slow', 900, 1)
    const slow = async () => (await scene.rank({ sla: { p99Ms: 500 } })).find(({ agentId }) => agentId === 'slow')
    expect((await slow())?.reasons).toEqual(['p99 is 900 ms, 500 ms at most'])
    expect(named(await scene.choose())).toContain('slow')
    await scene.clock.timeline.advance('301s')
    expect((await slow())?.usable).toBe(true)
  })

  it.each([
    [{ success: 0.99 }, provider('x', { success: 0.5 }), '50 % succeed, 99 % at least'],
    [{ load: 50 }, provider('x', { load: 80 }), 'load is 80, 50 at most'],
    [{ costLevel: 2 }, provider('x'), 'cost level is 3, 2 at most'],
  ])('%j leaves out who breaks it', async (sla, one, why) => {
    const [candidate] = await routing([one]).rank({ sla })
    expect(candidate?.reasons).toEqual([why])
  })
})
