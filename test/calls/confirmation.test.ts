import { capability, isHermesError, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { createTeam } from './support/team.ts'

const instant = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})
const repair = capability('repair', {
  description: 'Repairs, after a plan has been confirmed.',
  input: z.object({ confirmed: z.boolean().default(false), wrong: z.boolean().default(false) }),
  output: z.object({ done: z.boolean() }),
  partial: z.object({ plan: z.string(), due: instant }),
  effects: 'idempotent',
})
const plain = capability('plain', {
  description: 'Has no partial result.',
  input: z.null(),
  output: z.null(),
  effects: 'none',
})

const team = createTeam()
let pm: Peer
const served: { correlationId: string; confirmed: boolean; coder: string }[] = []

beforeAll(async () => {
  for (const coder of ['coder-a', 'coder-b', 'coder-c']) {
    await team.start(coder, (peer) =>
      peer
        .provide(repair, ({ confirmed, wrong }, context) => {
          served.push({ correlationId: context.correlationId, confirmed, coder })
          if (wrong) return context.needConfirmation({ plan: 5 } as never)
          return confirmed
            ? { done: true }
            : context.needConfirmation({ plan: 'revert line 5', due: '2026-01-02T03:04:05.000Z' })
        })
        .provide(plain, (_, context) => context.needConfirmation('anything')),
    )
  }
  pm = await team.start('pm')
  await Promise.all(['coder-a', 'coder-b', 'coder-c'].map((name) => pm.manifest(name)))
})
afterAll(() => team.stop())

describe('an answer that needs confirmation', () => {
  it('comes by request() as a plan, typed and parsed by the contract', async () => {
    const answer = await pm.request(repair, {})
    expect(answer).toMatchObject({ status: 'need_confirmation', output: undefined })
    expect(answer.partialResult).toEqual({ plan: 'revert line 5', due: new Date('2026-01-02T03:04:05.000Z') })
  })

  it('is confirmed in a second request of the same correlation, which goes to the agent that made the plan', async () => {
    for (let round = 0; round < 5; round++) {
      for (const coder of ['coder-a', 'coder-b', 'coder-c']) {
        const plan = await pm.request(repair, {}, { agent: coder })
        const done = await pm.request(repair, { confirmed: true }, { correlationId: plan.correlationId })
        expect(done).toMatchObject({ status: 'completed', output: { done: true }, correlationId: plan.correlationId })
        expect(done.messageId).not.toBe(plan.messageId)
        expect(done.agent).toBe(coder)
        expect(served.slice(-2)).toEqual([
          { correlationId: plan.correlationId, confirmed: false, coder },
          { correlationId: plan.correlationId, confirmed: true, coder },
        ])
      }
    }
  })

  it('makes call() end with CONFIRMATION_NEEDED, which carries what a second request needs', async () => {
    const error = await pm.call(repair, {}).catch((caught: unknown) => caught)
    if (!isHermesError(error)) throw error
    expect(error.code).toBe('CONFIRMATION_NEEDED')
    expect(error.details).toMatchObject({
      partial_result: { plan: 'revert line 5' },
      correlation_id: expect.stringMatching(/^corr_/),
    })
    expect(error.hint).toMatch(/request\(\)/)
    const { correlation_id, agent } = error.details as { correlation_id: string; agent: string }
    expect(await pm.call(repair, { confirmed: true }, { correlationId: correlation_id, agent })).toEqual({ done: true })
  })

  it('makes callDynamic() end likewise', async () => {
    await expect(pm.callDynamic('repair', {})).rejects.toMatchObject({
      code: 'CONFIRMATION_NEEDED',
      details: { partial_result: { plan: 'revert line 5' }, agent: expect.stringMatching(/^coder-/) },
    })
  })

  it('may carry anything where the contract has no partial result', async () => {
    expect(await pm.request(plain, null)).toMatchObject({ status: 'need_confirmation', partialResult: 'anything' })
  })

  it('that does not fit the contract is a mistake of the handler', async () => {
    await expect(pm.request(repair, { wrong: true })).rejects.toMatchObject({
      code: expect.stringMatching(/INVALID_RESULT|INVALID_OUTPUT/),
    })
  })

  it('counts as an answer: the calls balance', async () => {
    const { calls, succeeded, failed, inFlight } = pm.balance()
    expect(inFlight).toBe(0)
    expect(succeeded + failed).toBe(calls)
  })
})
