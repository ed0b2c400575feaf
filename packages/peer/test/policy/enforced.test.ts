import { describe, expect, it } from 'vitest'
import type { SendFilter } from '../../src/delivery/outbox.ts'
import { agents, allow, draft, pay, report } from './scene.ts'

const upTo = (max: number) => ({ constraints: { '/amount': { max } } })

describe('without a policy', () => {
  it('every admitted agent may use every capability, which is said once at the start', async () => {
    const { net, peer, of } = await agents({ ledger: undefined, pm: undefined })
    expect(await net.until(peer('pm').call(pay, { amount: 1 }, { agent: 'ledger' }))).toEqual({ by: 'ledger' })
    const notices = of('ledger', 'peer.notice').map(({ text }) => text)
    expect(notices.filter((text) => text.includes('every admitted agent may use every capability'))).toHaveLength(1)
    expect(of('ledger', 'policy.decided')).toEqual([])
  })
})

describe('what policy does to each way of asking', () => {
  const policies = (serve: readonly ReturnType<typeof allow>[]) => ({ ledger: { serve }, pm: undefined })

  it('a call: what no rule allows is POLICY_DENIED before its handler starts, and the rule is named on our side only', async () => {
    const { net, peer, failure, started, of } = await agents(policies([allow('pm', 'pay', upTo(10))]))
    expect(await net.until(peer('pm').call(pay, { amount: 10 }, { agent: 'ledger' }))).toEqual({ by: 'ledger' })
    const shape = await failure(peer('pm').call(report, { amount: 1 }, { agent: 'ledger' }))
    const value = await failure(peer('pm').call(pay, { amount: 11 }, { agent: 'ledger' }))
    for (const error of [shape, value]) {
      expect(error).toMatchObject({ code: 'POLICY_DENIED', retryable: false, source: 'policy', remote: true })
      expect(JSON.stringify([error.message, error.details])).not.toContain('serve[0]')
    }
    expect(started).toHaveLength(1)
    expect(of('ledger', 'policy.decided')).toMatchObject([
      { effect: 'allow', rule: 'policy: serve[0]', because: 'allowed', from: 'pm', capability: 'pay' },
      { effect: 'deny', rule: 'policy', because: 'no rule', subject: 'pm', capability: 'report.week' },
      { effect: 'deny', rule: 'policy: serve[0]', because: 'constraint', pointer: '/amount', capability: 'pay' },
    ])
    expect(peer('pm').balance()).toMatchObject({ calls: 3, succeeded: 1, failed: 2, inFlight: 0 })
  })

  it('a task: refused before it is stored', async () => {
    const { net, peer, failure, started, of } = await agents(policies([allow('pm', 'pay', upTo(10))]))
    const task = await net.until(peer('pm').submit(pay, { amount: 5 }, { agent: 'ledger' }))
    expect(await net.until(task.result())).toEqual({ by: 'ledger' })
    const error = await failure(peer('pm').submit(pay, { amount: 11 }, { agent: 'ledger' }))
    expect(error.code).toBe('POLICY_DENIED')
    expect((await failure(peer('pm').submit(report, { amount: 11 }, { agent: 'ledger' }))).code).toBe('POLICY_DENIED')
    expect(started).toHaveLength(1)
    expect(of('ledger', 'task.accepted')).toHaveLength(1)
  })

  it('a stream', async () => {
    const { net, peer, started } = await agents(policies([allow('pm', 'draft', upTo(10))]))
    const read = async (amount: number) => {
      const stream = peer('pm').stream(draft, { amount }, { agent: 'ledger' })
      const pieces: string[] = []
      for await (const piece of stream) pieces.push(piece)
      return [pieces, await stream.result]
    }
    expect(await net.until(read(1))).toEqual([['one'], { by: 'ledger' }])
    await expect(net.until(read(11))).rejects.toMatchObject({ code: 'POLICY_DENIED' })
    expect(started).toHaveLength(1)
  })

  it('an event, under a name of its own kind, on its data; one that waits for an ack is told', async () => {
    const { net, peer, failure, of } = await agents(
      policies([allow('pm', 'pay'), allow('pm', 'event:paid', { constraints: { '/amount': { max: 10 } } })]),
    )
    const got: unknown[] = []
    for (const name of ['paid', 'pay']) peer('ledger').onEvent(name, ({ data }) => got.push(data))
    const emit = (event: string, data: unknown, more = {}) => peer('pm').emit({ agent: 'ledger', event }, data, more)
    await net.until(emit('paid', { amount: 1 }))
    await net.until(emit('paid', { amount: 11 }))
    await net.until(emit('pay', { amount: 1 }))
    expect(await net.until(emit('paid', { amount: 2 }, { ack: 'stored' }))).toMatchObject({ stored: true })
    expect(await failure(emit('paid', { amount: 12 }, { ack: 'stored' }))).toMatchObject({ code: 'POLICY_DENIED' })
    expect(await failure(emit('pay', null, { ack: 'stored' }))).toMatchObject({ code: 'POLICY_DENIED' })
    expect(got).toEqual([{ amount: 1 }, { amount: 2 }])
    expect(of('ledger', 'policy.decided').filter(({ effect }) => effect === 'deny')).toHaveLength(4)
  })

  it('a topic, judged by its sender and its data', async () => {
    const { net, peer, of, until } = await agents({
      ledger: { serve: [allow('pm', 'topic:news', { constraints: { '/level': { one_of: ['info'] } } })] },
      pm: undefined,
      spy: undefined,
    })
    const got: unknown[] = []
    peer('ledger').onTopic('news', ({ sender, data }) => got.push([sender, data]))
    await net.advance('3s')
    await net.until(peer('pm').emit({ topic: 'news' }, { level: 'info' }))
    await net.until(peer('pm').emit({ topic: 'news' }, { level: 'alarm' }))
    await net.until(peer('spy').emit({ topic: 'news' }, { level: 'info' }))
    await until(() => of('ledger', 'policy.decided').length === 3, 'three decisions')
    expect(got).toEqual([['pm', { level: 'info' }]])
  })

  it('what every peer offers goes by its own guards: manifests for all, tasks for their owners', async () => {
    const { net, peer, failure } = await agents({
      ledger: { serve: [allow('pm', 'pay'), allow('*', '*', { effect: 'deny', ...upTo(-1) })] },
      pm: undefined,
      spy: undefined,
    })
    expect((await net.until(peer('spy').manifest('ledger'))).agent_id).toBe('ledger')
    const task = await net.until(peer('pm').submit(pay, { amount: 5 }, { agent: 'ledger' }))
    expect(await net.until(task.result())).toEqual({ by: 'ledger' })
    const stolen = peer('spy').task(pay, task.id, { agent: 'ledger' })
    expect((await failure(stolen.status())).code).toBe('TASK_NOT_FOUND')
  })
})

describe('teams and roles', () => {
  it('of an agent are what trust knows, and nothing that it says', async () => {
    const members = (id: string) => ({ pm: { team: 'finance' }, intern: { team: 'finance', roles: ['intern'] } })[id]
    const serve = [allow('team:finance', 'pay'), allow('role:intern', '*', { effect: 'deny' })]
    const { net, peer, failure } = await agents(
      { ledger: { serve }, pm: undefined, intern: undefined, x: undefined },
      { members },
    )
    const call = (id: string) => peer(id).call(pay, { amount: 1 }, { agent: 'ledger' })
    expect(await net.until(call('pm'))).toEqual({ by: 'ledger' })
    expect((await failure(call('intern'))).code).toBe('POLICY_DENIED')
    expect((await failure(call('x'))).code).toBe('POLICY_DENIED')
  })
})

describe('threat: confused deputy', () => {
  const forward = (next: string) => (_: unknown, ctx: { forward(target: string): Promise<unknown> }) =>
    ctx.forward(next)

  it('a call that is handed on needs originator and forwarder allowed', async () => {
    const serve = [allow('deputy', 'pay'), allow('thief', 'report.week'), allow('deputy', 'report.week')]
    const { net, peer, failure, started, of } = await agents(
      { bank: { serve }, deputy: undefined, thief: undefined },
      { serve: { deputy: forward('bank') } },
    )
    const error = await failure(peer('thief').call(pay, { amount: 1 }, { agent: 'deputy' }))
    expect(error).toMatchObject({ code: 'POLICY_DENIED', remote: true })
    expect(started.map(({ by }) => by)).toEqual(['deputy'])
    expect(of('bank', 'policy.decided')).toMatchObject([
      { effect: 'deny', subject: 'thief', from: 'thief', via: ['deputy'] },
    ])
    // Both may have the report.
    expect(await net.until(peer('thief').call(report, { amount: 1 }, { agent: 'deputy' }))).toEqual({ by: 'bank' })
  })

  it('nor does an allowed originator lend its power to a forwarder that is not, tasks included', async () => {
    const { peer, net, failure, started } = await agents(
      { bank: { serve: [allow('boss', 'pay')] }, deputy: undefined, boss: undefined },
      { serve: { deputy: forward('bank') } },
    )
    expect((await failure(peer('boss').call(pay, { amount: 1 }, { agent: 'deputy' }))).code).toBe('POLICY_DENIED')
    const task = await net.until(peer('boss').submit(pay, { amount: 1 }, { agent: 'deputy' }))
    expect((await failure(task.result())).code).toBe('POLICY_DENIED')
    expect(started.filter(({ by }) => by === 'bank')).toEqual([])
    expect(await net.until(peer('boss').call(pay, { amount: 1 }, { agent: 'bank' }))).toEqual({ by: 'bank' })
  })

  it('what a handler asks for in its own name is judged as its own', async () => {
    const { peer, failure, started } = await agents(
      { bank: { serve: [allow('thief', 'pay')] }, deputy: undefined, thief: undefined },
      {
        serve: { deputy: ({ amount }) => peer('deputy').call(pay, { amount }, { agent: 'bank' }) },
      },
    )
    const error = await failure(peer('thief').call(report, { amount: 1 }, { agent: 'deputy' }))
    expect(error).toMatchObject({ code: 'HANDLER_ERROR', details: { cause_code: 'POLICY_DENIED' } })
    expect(started.map(({ by }) => by)).toEqual(['deputy'])
  })
})

describe('what this agent may ask for', () => {
  it('is a hard filter of routing, and shown with its rule', async () => {
    const { net, peer, failure, started } = await agents({
      pm: { call: [{ principal: ['crm', 'old'], capability: 'report.*', constraints: { '/amount': { max: 10 } } }] },
      crm: undefined,
      ledger: undefined,
    })
    expect(await net.until(peer('pm').call(report, { amount: 1 }))).toEqual({ by: 'crm' })
    const found = await net.until(peer('pm').find({ capability: 'report.week' }))
    expect(found.map(({ agentId, usable, reasons }) => [agentId, usable, usable ? [] : reasons])).toEqual([
      ['crm', true, []],
      ['ledger', false, ['denied, no rule in policy']],
    ])
    const error = await failure(peer('pm').call(report, { amount: 11 }))
    expect(error).toMatchObject({ code: 'NO_CANDIDATE' })
    expect(error.message).toContain('crm: denied, policy: call[0]')
    expect(started.map(({ by }) => by)).toEqual(['crm'])
  })

  it('holds for tasks and events to an agent that is named, for topics, and for what is handed on', async () => {
    const { net, peer, failure, started } = await agents(
      {
        pm: {
          serve: [allow('*', '*')],
          call: [
            { principal: 'crm', capability: 'pay' },
            { principal: '*', capability: 'topic:news' },
          ],
        },
        crm: undefined,
        ledger: undefined,
      },
      { serve: { pm: (_, ctx) => ctx.forward('ledger') } },
    )
    const pm = peer('pm')
    expect(await failure(pm.submit(pay, { amount: 1 }, { agent: 'ledger' }))).toMatchObject({
      code: 'POLICY_DENIED',
      remote: false,
    })
    expect((await failure(pm.emit({ agent: 'ledger', event: 'x' }, 1))).message).toContain('denied, no rule in policy')
    expect(await net.until(pm.emit({ topic: 'news' }, 1))).toBeTruthy()
    expect((await failure(pm.emit({ topic: 'other' }, 1))).code).toBe('POLICY_DENIED')
    const handedOn = await failure(peer('crm').call(pay, { amount: 1 }, { agent: 'pm' }))
    expect(handedOn.code).toBe('HANDLER_ERROR')
    const task = await net.until(peer('crm').submit(pay, { amount: 1 }, { agent: 'pm' }))
    expect((await failure(task.result())).code).toBe('HANDLER_ERROR')
    expect(started.filter(({ by }) => by === 'ledger')).toEqual([])
  })
})

describe('a denial', () => {
  it('makes the caller go to another candidate, once, and end with it when all deny', async () => {
    const denying = { serve: [allow('pm', 'pay', upTo(10))] }
    const { net, peer, failure, of } = await agents({ a: denying, b: { serve: [allow('pm', 'pay')] }, pm: undefined })
    for (let n = 0; n < 5; n++) expect(await net.until(peer('pm').call(pay, { amount: 50 }))).toEqual({ by: 'b' })
    const task = await net.until(peer('pm').submit(pay, { amount: 50 }))
    expect(await net.until(task.result())).toEqual({ by: 'b' })
    await net.crash('b')
    await net.advance('70s')
    const error = await failure(peer('pm').call(pay, { amount: 50 }, { timeoutMs: 5000 }))
    expect(error.code).toBe('POLICY_DENIED')
    expect(error.attempts).toHaveLength(1)
    // A denial says nothing of how well the agent works.
    expect(of('pm', 'breaker.opened')).toEqual([])
  })
})

describe('F-39 quotas', () => {
  it('are of the agent that the key proves: new links and lives do not fill them, and other agents do not empty them', async () => {
    const serve = [allow('*', 'report.week', { max_qps: 2 })]
    const { net, peer, failure, started, launch } = await agents({ ledger: { serve }, pm: undefined, other: undefined })
    const ask = (id: string) => peer(id).call(report, { amount: 1 }, { agent: 'ledger', timeoutMs: 100 })
    for (let n = 0; n < 2; n++) await net.until(ask('pm'))
    const refused = await failure(ask('pm'))
    expect(refused).toMatchObject({ code: 'QUOTA_EXCEEDED', retryable: true, source: 'policy' })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    await net.crash('pm')
    const again = await launch('pm')
    const count = started.length
    const burst = Array.from({ length: 20 }, () =>
      again.call(report, { amount: 1 }, { agent: 'ledger', timeoutMs: 50 }),
    )
    await net.until(Promise.allSettled(burst))
    expect(started.length - count).toBeLessThanOrEqual(2)
    expect(await net.until(ask('other'))).toEqual({ by: 'ledger' })
  })

  it('are waited for where the deadline allows it', async () => {
    const { net, peer } = await agents({
      ledger: { serve: [allow('*', 'report.week', { max_qps: 1 })] },
      pm: undefined,
    })
    const ask = () => peer('pm').call(report, { amount: 1 }, { agent: 'ledger', timeoutMs: 10_000 })
    await net.until(ask())
    expect(await net.until(ask())).toEqual({ by: 'ledger' })
  })

  it('max_concurrency counts what is under way, gives its place back however it ends, and counts tasks until their end', async () => {
    const serve = [allow('*', '*', { max_concurrency: 2 })]
    const gates: (() => void)[] = []
    const { net, peer, failure, until } = await agents(
      { ledger: { serve }, pm: undefined },
      { serve: { ledger: () => new Promise((resolve) => gates.push(() => resolve({ by: 'ledger' }))) } },
    )
    const stop = new AbortController()
    const ask = (more = {}) => peer('pm').call(report, { amount: 1 }, { agent: 'ledger', timeoutMs: 200, ...more })
    const first = ask({ signal: stop.signal, timeoutMs: 60_000 })
    first.catch(() => undefined)
    const task = await net.until(peer('pm').submit(pay, { amount: 1 }, { agent: 'ledger' }))
    await until(() => gates.length === 2, 'both under way')
    expect((await failure(ask())).code).toBe('QUOTA_EXCEEDED')
    gates[1]?.()
    expect(await net.until(task.result())).toEqual({ by: 'ledger' })
    const second = ask({ timeoutMs: 60_000 })
    await until(() => gates.length === 3, 'the freed place is taken')
    stop.abort()
    expect((await failure(first)).code).toBe('CANCELLED')
    gates[0]?.()
    gates[2]?.()
    expect(await net.until(second)).toEqual({ by: 'ledger' })
    expect(gates).toHaveLength(3)
  })

  it('a duplicate costs nothing', async () => {
    const twice: SendFilter = (_, frame, deliver) => {
      deliver(frame)
      deliver(frame)
    }
    const { net, peer, of } = await agents(
      { ledger: { serve: [allow('*', '*', { max_qps: 1 })] }, pm: undefined },
      { sendFilter: (id) => (id === 'pm' ? twice : undefined) },
    )
    expect(await net.until(peer('pm').call(report, { amount: 1 }, { agent: 'ledger' }))).toEqual({ by: 'ledger' })
    const dups = ['dedup.joined', 'dedup.stored'] as const
    expect(dups.flatMap((type) => of('ledger', type)).length).toBeGreaterThan(0)
    expect(of('ledger', 'policy.decided')).toMatchObject([{ effect: 'allow' }])
  })
})

describe('audit', () => {
  it('lets everything through, and tells what would be refused and by which rule', async () => {
    const serve = [allow('pm', 'pay', { ...upTo(10), max_qps: 1 })]
    const { net, peer, of } = await agents({
      ledger: { mode: 'audit', serve, call: [] },
      pm: undefined,
    })
    for (const amount of [1, 11]) await net.until(peer('pm').call(pay, { amount }, { agent: 'ledger' }))
    await net.until(peer('pm').call(report, { amount: 1 }, { agent: 'ledger' }))
    await net.until(peer('ledger').call(report, { amount: 1 }, { agent: 'pm' }))
    const told = of('ledger', 'policy.decided').filter(({ effect }) => effect === 'deny')
    expect(told.every(({ audit }) => audit)).toBe(true)
    expect(told.map(({ side, because, capability }) => [side, because, capability])).toEqual([
      ['serve', 'quota', 'pay'],
      ['serve', 'constraint', 'pay'],
      ['serve', 'no rule', 'report.week'],
      ['call', 'no rule', 'report.week'],
    ])
    expect(of('ledger', 'peer.notice').some(({ text }) => text.includes('audit: nothing is refused'))).toBe(true)
  })
})
