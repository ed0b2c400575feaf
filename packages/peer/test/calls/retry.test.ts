import { ERROR_TABLE, type ErrorCode, type ErrorRow } from '@hermes-peer/protocol'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cast, createCast, refuse, succeed, vanish } from './providers.ts'
import type { Got, RawPeer } from './raw.ts'

let cast: Cast
beforeAll(async () => {
  cast = await createCast(['a', 'b', 'c', 'd', 'e'])
})
afterAll(() => cast.stop())

const rows = Object.entries(ERROR_TABLE) as [ErrorCode, ErrorRow][]
const onWire = rows.filter(([, row]) => !row.local)

describe('F-15 wrong idea of what is worth retrying', () => {
  it('each code of the table that is not retryable ends the call after one attempt', async () => {
    const codes = onWire.filter(([, row]) => !row.retryable).map(([code]) => code)
    expect(codes.length).toBeGreaterThan(20)
    let next = ''
    const answer = (got: Got, raw: RawPeer) => refuse(next, { retryable: false })(got, raw)
    const { asked, failure } = await cast.scene({ a: answer, b: answer })
    for (const code of codes) {
      next = code
      asked.length = 0
      const error = await failure()
      expect([code, error.code, asked.length, error.attempts.map(({ code: one }) => one)]).toEqual([
        code,
        code,
        1,
        [code],
      ])
    }
  })

  it('a peer that calls such a code retryable is not believed, nor is an unknown code that says so of itself', async () => {
    let next = ''
    const answer = (got: Got, raw: RawPeer) => refuse(next, { retryable: true })(got, raw)
    const { asked, failure } = await cast.scene({ a: answer, b: answer })
    const known = ['VALIDATION_ERROR', 'NOT_ALLOWED', 'HANDLER_ERROR', 'MESSAGE_CONFLICT']
    // Of a newer peer, only ever said by a peer to itself, and none at all.
    const unknown = ['FLUX_CAPACITOR_LOW', 'STORAGE_FAILED', 'please retry', '']
    for (const code of [...known, ...unknown]) {
      next = code
      asked.length = 0
      const error = await failure()
      expect([code, error.retryable, asked.length]).toEqual([code, false, 1])
      if (known.includes(code)) expect(error.code).toBe(code)
    }
  })

  it('codes that promise that nothing was started go on to another candidate, also for effects once', async () => {
    let code: string | undefined
    // Whoever is asked first refuses.
    const behave = (got: Got, raw: RawPeer) => {
      const refusal = code
      code = undefined
      if (refusal === undefined) succeed(got, raw)
      else refuse(refusal)(got, raw)
    }
    const { asked, call } = await cast.scene({ a: behave, b: behave, c: behave }, 'once')
    for (const next of ['BUSY', 'DRAINING', 'CAPABILITY_NOT_FOUND', 'PEER_RESTARTED', 'STALE_SEQUENCE']) {
      code = next
      asked.length = 0
      const answer = await call()
      expect([next, answer.output, asked.length, new Set(asked).size]).toEqual([next, 'ok', 2, 2])
      expect(answer.attempts).toMatchObject([{ agentId: asked[0], code: next }])
    }
  })

  it('one call has at most three attempts, whatever is retried on which level', async () => {
    const providers = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, refuse('BUSY')]))
    const { asked, failure, events, caller } = await cast.scene(providers)
    const error = await failure()
    expect(error.code).toBe('BUSY')
    expect(asked).toHaveLength(3)
    expect(error.attempts).toHaveLength(3)
    expect(events.of('call.ended')).toMatchObject([{ attempts: 3, code: 'BUSY' }])
    expect(caller.balance()).toMatchObject({ calls: 1, failed: 1, inFlight: 0 })
  })

  it('the same candidate is asked again only after a wait, at least as long as it asked for', async () => {
    let count = 0
    const times: number[] = []
    const { call, events } = await cast.scene({
      a: (got, raw) => {
        times.push(performance.now())
        if (++count === 1) refuse('BUSY', { retry_after_ms: 150 })(got, raw)
        else succeed(got, raw)
      },
    })
    expect(await call()).toMatchObject({ output: 'ok' })
    expect(times).toHaveLength(2)
    // Timers may fire a millisecond early.
    expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(149)
    expect(events.of('call.retry')).toMatchObject([{ agentId: 'a', code: 'BUSY' }])
  })

  it('of a candidate that is gone when its turn comes again, the error is the one it gave, not that there is nobody', async () => {
    const { failure } = await cast.scene({
      a: (got, raw) => {
        refuse('BUSY', { retry_after_ms: 200 })(got, raw)
        // After the answer has been written.
        setImmediate(() => vanish(got, raw))
      },
    })
    const error = await failure()
    expect(error.attempts.map(({ code }) => code)).toContain('BUSY')
    expect(error.code).toMatch(/BUSY|PEER_UNREACHABLE/)
  })

  it('a wait that does not fit into the deadline is not begun: the error comes at once', async () => {
    const { failure } = await cast.scene({ a: refuse('BUSY', { retry_after_ms: 60_000 }) })
    const since = performance.now()
    expect((await failure({ timeoutMs: 20_000 })).code).toBe('BUSY')
    expect(performance.now() - since).toBeLessThan(10_000)
  })

  it('when the budget is used up, nothing is retried: the callers of a failing agent do not multiply', async () => {
    const { asked, failure } = await cast.scene({ a: refuse('BUSY') }, 'none', { retryBudget: 2, retryRefill: 0.1 })
    for (let i = 0; i < 10; i++) await failure()
    // 10 calls, a budget of 2, and one more earned by ten calls.
    expect(asked.length).toBeLessThanOrEqual(10 + 2 + 1)
  })

  it.each(['none', 'idempotent'] as const)(
    'a link that is lost after the request went out: effects %s go elsewhere at once',
    async (effects) => {
      const { asked, call } = await cast.scene({ a: vanish, b: vanish, c: succeed }, effects)
      const answer = await call()
      expect(answer.agent).toBe('c')
      expect(asked.at(-1)).toBe('c')
      expect(answer.attempts.every(({ code }) => code === 'PEER_UNREACHABLE')).toBe(true)
    },
  )

  it('a link that is lost after the request went out: effects once are not sent again without asking what became of it', async () => {
    const { asked, failure } = await cast.scene({ a: vanish }, 'once', { outcomeTimeoutMs: 400 })
    const error = await failure()
    expect(error.code).toBe('OUTCOME_UNKNOWN')
    expect(error.messageId).toMatch(/^msg_/)
    expect(asked).toHaveLength(1)
  })
})
