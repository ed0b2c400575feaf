import { describe, expect, it } from 'vitest'
import type { CallContext } from '../../src/api.ts'
import type { Delegation } from '../../src/policy/delegations.ts'
import { agents, allow, draft, pay, report } from './scene.ts'

type Context = CallContext<typeof pay>
/** Calls the bank with what was lent, and gives the answer. */
const upTo = (max: number) => ({ '/amount': { max } })

/** a lends b what it may at the bank; b does what `deputy` says. */
async function lent(
  deputy: (input: { amount: number }, ctx: Context, self: Awaited<ReturnType<typeof agents>>) => unknown,
  { bank = [allow('a', 'pay')], more = {} as Record<string, undefined> } = {},
) {
  let scene: Awaited<ReturnType<typeof agents>> | undefined
  scene = await agents(
    { bank: { serve: bank }, b: undefined, a: undefined, ...more },
    { serve: { b: (input, ctx) => deputy(input, ctx, scene as NonNullable<typeof scene>) } },
  )
  const { net, peer, failure, started } = scene
  const grant = (how = {}) => peer('a').delegate({ to: 'b', capabilities: ['pay'], constraints: upTo(100), ...how })
  const ask = (amount: number, delegation: Delegation | undefined = grant()) =>
    peer('a').call(report, { amount }, { agent: 'b', ...(delegation ? { delegation } : {}) })
  const paid = () => started.filter(({ by, capability }) => by === 'bank' && capability === 'pay').length
  return { ...scene, grant, ask, paid, net, failure }
}

const withIt = (input: { amount: number }, ctx: Context, { peer }: Awaited<ReturnType<typeof agents>>) =>
  peer('b').call(
    pay,
    { amount: input.amount },
    { agent: 'bank', ...(ctx.delegation ? { delegation: ctx.delegation } : {}) },
  )

describe('delegated authority', () => {
  it('lets b do at the bank what a may, as far as a has lent it, and nothing in its own name', async () => {
    const { net, ask, failure, paid, of, peer } = await lent(withIt)
    expect(await net.until(ask(100))).toEqual({ by: 'bank' })
    expect(of('bank', 'policy.decided')).toMatchObject([
      { effect: 'allow', from: 'b', subject: 'a', capability: 'pay' },
    ])
    // More than was lent, and nothing lent at all.
    expect(await failure(ask(101))).toMatchObject({
      code: 'HANDLER_ERROR',
      details: { cause_code: 'DELEGATION_REFUSED' },
    })
    const own = await failure(peer('b').call(pay, { amount: 1 }, { agent: 'bank' }))
    expect(own.code).toBe('POLICY_DENIED')
    expect(paid()).toBe(1)
  })

  it('is never more than the root may itself', async () => {
    const { failure, ask, grant, paid } = await lent(withIt, {
      bank: [allow('a', 'pay', { constraints: upTo(10) }), allow('b', 'report.week')],
    })
    expect(await failure(ask(50, grant()))).toMatchObject({ details: { cause_code: 'POLICY_DENIED' } })
    expect(paid()).toBe(0)
  })

  it('does not outweigh an explicit denial of who presents it', async () => {
    const { failure, ask, paid, of } = await lent(withIt, {
      bank: [allow('a', 'pay'), allow('b', 'pay', { effect: 'deny' })],
    })
    expect(await failure(ask(50))).toMatchObject({ details: { cause_code: 'POLICY_DENIED' } })
    expect(of('bank', 'policy.decided')).toMatchObject([{ effect: 'deny', subject: 'b', because: 'denied' }])
    expect(paid()).toBe(0)
  })

  it('covers only the capabilities that it names', async () => {
    const { failure, peer, grant, started } = await lent(
      (_, ctx, { peer: by }) =>
        by('b').call(report, { amount: 1 }, { agent: 'bank', delegation: ctx.delegation as Delegation }),
      { bank: [allow('a', '*')] },
    )
    const error = await failure(peer('a').call(report, { amount: 1 }, { agent: 'b', delegation: grant() }))
    expect(error).toMatchObject({ details: { cause_code: 'DELEGATION_REFUSED' } })
    expect(started.filter(({ by }) => by === 'bank')).toEqual([])
  })

  it('ends in time, also for a link that was verified before', async () => {
    const { net, ask, failure, grant, paid } = await lent(withIt)
    const short = grant({ ttlMs: 60_000 })
    expect(await net.until(ask(1, short))).toEqual({ by: 'bank' })
    await net.advance('100s')
    expect((await failure(ask(1, short))).code).toBe('DELEGATION_REFUSED')
    expect(paid()).toBe(1)
  })

  it('holds for tasks and streams, and for a task that is started later', async () => {
    const { net, peer, grant, started, failure } = await lent(() => ({ by: 'b' }), {
      bank: [allow('a', '*')],
    })
    const delegation = grant({ capabilities: ['pay', 'draft'] })
    const task = await net.until(peer('b').submit(pay, { amount: 5 }, { agent: 'bank', delegation }))
    expect(await net.until(task.result())).toEqual({ by: 'bank' })
    const read = async (amount: number) => {
      const pieces: string[] = []
      for await (const piece of peer('b').stream(draft, { amount }, { agent: 'bank', delegation })) pieces.push(piece)
      return pieces
    }
    expect(await net.until(read(5))).toEqual(['one'])
    await expect(net.until(read(500))).rejects.toMatchObject({ code: 'DELEGATION_REFUSED' })
    expect((await failure(peer('b').submit(pay, { amount: 500 }, { agent: 'bank', delegation }))).code).toBe(
      'DELEGATION_REFUSED',
    )
    expect(started.filter(({ by }) => by === 'bank')).toHaveLength(2)
  })

  it('is verified where nobody has a policy, too', async () => {
    const { net, peer, failure } = await agents({ bank: undefined, b: undefined, a: undefined, c: undefined })
    const delegation = peer('a').delegate({ to: 'b', capabilities: ['pay'], constraints: upTo(10) })
    const call = (id: string, amount: number) => peer(id).call(pay, { amount }, { agent: 'bank', delegation })
    expect(await net.until(call('b', 10))).toEqual({ by: 'bank' })
    expect((await failure(call('b', 11))).code).toBe('DELEGATION_REFUSED')
    expect((await failure(call('c', 1))).code).toBe('DELEGATION_REFUSED')
  })
})

describe('threat: delegation widening', () => {
  it('nobody but the one it was given to can use it: not who saw it, not who was refused it', async () => {
    const { peer, grant, failure, paid } = await lent(withIt, { more: { thief: undefined } })
    const seen = grant()
    const error = await failure(peer('thief').call(pay, { amount: 1 }, { agent: 'bank', delegation: seen }))
    expect(error.code).toBe('DELEGATION_REFUSED')
    expect(error.message).toContain('given to another agent')
    expect(paid()).toBe(0)
  })

  it('is passed on narrower, up to five links, and no wider', async () => {
    const thrown: unknown[] = []
    const { net, peer, grant, ask, failure, paid } = await lent(
      async ({ amount }, ctx, { peer: by }) => {
        for (const wider of [{ capabilities: ['pay', 'draft'] }, { constraints: { '/amount': { min: 200 } } }]) {
          try {
            ctx.delegate({ to: 'c', ...wider })
          } catch (error) {
            thrown.push((error as { code: string }).code)
          }
        }
        const passed = ctx.delegate({ to: 'c', constraints: { '/amount': { max: 1000 }, '/to': { equals: 'shop' } } })
        expect(passed).toMatchObject({
          from: 'a',
          to: 'c',
          constraints: { '/amount': { max: 100 }, '/to': { equals: 'shop' } },
        })
        return {
          by: JSON.stringify(await by('c').call(pay, { amount, to: 'shop' }, { agent: 'bank', delegation: passed })),
        }
      },
      { more: { c: undefined } },
    )
    expect(await net.until(ask(100))).toEqual({ by: '{"by":"bank"}' })
    expect(thrown).toEqual(['INVALID_OPTION', 'INVALID_OPTION'])
    expect(await failure(ask(101))).toMatchObject({ details: { cause_code: 'DELEGATION_REFUSED' } })
    expect(paid()).toBe(1)
    expect(grant().from).toBe('a')
    expect(peer('a').agentId).toBe('a')
  })

  it('the header names the very document: another one in its place is refused, and so is none', async () => {
    const { peer, grant, failure, net } = await lent(withIt)
    const delegation = grant()
    const other = grant({ constraints: {} })
    // The header of the one over the document of the other: what a client that signs what it likes would send.
    const forged = { ...delegation, document: other.document.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')) }
    const error = await failure(peer('b').call(pay, { amount: 1 }, { agent: 'bank', delegation: forged }))
    expect(error.code).toBe('DELEGATION_REFUSED')
    expect(await net.until(peer('b').call(pay, { amount: 1 }, { agent: 'bank', delegation }))).toEqual({ by: 'bank' })
  })

  it('who was lent nothing can pass on nothing', async () => {
    const { failure, peer } = await lent((_, ctx) => ctx.delegate({ to: 'c', capabilities: ['pay'] }))
    const error = await failure(peer('a').call(report, { amount: 1 }, { agent: 'b' }))
    expect(error).toMatchObject({ details: { cause_code: 'INVALID_OPTION' } })
  })
})

describe('delegate()', () => {
  it.each([
    ['to itself', { to: 'a', capabilities: ['pay'] }, 'INVALID_OPTION', 'to'],
    ['to a name that is none', { to: 'Bé', capabilities: ['pay'] }, 'INVALID_NAME', 'to'],
    ['of nothing', { to: 'b', capabilities: [] }, 'INVALID_OPTION', 'capabilities'],
    ['without capabilities', { to: 'b' }, 'INVALID_OPTION', 'capabilities'],
    ['of a pattern', { to: 'b', capabilities: ['pay*'] }, 'INVALID_NAME', 'capabilities'],
    ['of what the runtime offers', { to: 'b', capabilities: ['hermes.context'] }, 'INVALID_OPTION', 'capabilities'],
    ['for longer than a day', { to: 'b', capabilities: ['pay'], ttlMs: 86_400_001 }, 'INVALID_OPTION', 'ttlMs'],
    ['for no time', { to: 'b', capabilities: ['pay'], ttlMs: 0 }, 'INVALID_OPTION', 'ttlMs'],
    [
      'with a constraint that is none',
      { to: 'b', capabilities: ['pay'], constraints: { amount: {} } },
      'INVALID_OPTION',
      'constraints',
    ],
    ['with an option that is not known', { to: 'b', capabilities: ['pay'], until: 5 }, 'INVALID_OPTION', 'until'],
    ['of nothing at all', undefined, 'INVALID_OPTION', 'options'],
  ])('refuses one %s, and names the field', async (_, options, code, field) => {
    const { peer } = await agents({ a: undefined })
    expect(() => peer('a').delegate(options as never)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(field) }),
    )
  })

  it('what is no delegation is refused before anything is sent', async () => {
    const { peer, failure } = await agents({ a: undefined, bank: undefined })
    for (const delegation of [5, {}, { document: '§' }]) {
      const error = await failure(
        peer('a').call(pay, { amount: 1 }, { agent: 'bank', delegation: delegation as never }),
      )
      expect(error).toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining('delegation') })
    }
  })
})

describe('a revoked key', () => {
  it('lends nothing any more, what it has lent before included', async () => {
    const { net, peer, failure, until, of } = await agents({ bank: undefined, b: undefined, a: undefined })
    const delegation = peer('a').delegate({ to: 'b', capabilities: ['pay'] })
    const ask = () => peer('b').call(pay, { amount: 1 }, { agent: 'bank', delegation })
    expect(await net.until(ask())).toEqual({ by: 'bank' })
    await net.until(peer('a').revoke({ key: peer('a').fingerprint, reason: 'lost' }))
    await until(() => of('bank', 'link.down').some(({ agentId }) => agentId === 'a'), 'the bank has heard of it')
    expect((await failure(ask())).code).toBe('DELEGATION_REFUSED')
  })
})
