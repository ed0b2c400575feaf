import { ERROR_TABLE, type ErrorCode, type ErrorRow } from '@hermes-peer/protocol'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../waiting.ts'
import { type Cast, createCast, isWork, refuse, succeed, vanish } from './providers.ts'
import type { Got, RawPeer } from './raw.ts'

let cast: Cast
beforeAll(async () => {
  cast = await createCast(['a', 'b', 'c', 'd', 'e'])
})
afterAll(() => cast.stop())

const rows = Object.entries(ERROR_TABLE) as [ErrorCode, ErrorRow][]
const onWire = rows.filter(([, row]) => !row.local)

describe('F-15 wrong idea of what is worth retrying', () => {
  it("a denial by policy is each provider's own: another is asked, and none of them twice", async () => {
    const answer = (got: Got, raw: RawPeer) => refuse('POLICY_DENIED', { retryable: false })(got, raw)
    const { asked, failure } = await cast.scene({ a: answer, b: answer })
    const error = await failure()
    expect([error.code, asked.length]).toEqual(['POLICY_DENIED', 2])
    expect(new Set(error.attempts.map(({ agentId }) => agentId))).toEqual(new Set(['a', 'b']))
  })

  it('each other code of the table that is not retryable ends the call after one attempt', async () => {
    const codes = onWire.filter(([code, row]) => !row.retryable && code !== 'POLICY_DENIED').map(([code]) => code)
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

describe('effects once, when the link is lost: hermes.outcome decides', () => {
  /** The first provider loses its link, and when it is asked again it says `state`. */
  const losing = (state: (got: Got) => object | undefined) => (got: Got, raw: RawPeer) => {
    if (isWork(got)) vanish(got, raw)
    else {
      const output = state(got)
      if (output) raw.reply(got, 'response', { output, status: 'completed' })
    }
  }

  it('done ends the call with that outcome', async () => {
    const outcome = { message_type: 'response', payload: { output: 'done before', status: 'completed' } }
    const { call, asked } = await cast.scene({ a: losing(() => ({ state: 'done', outcome })) }, 'once')
    expect(await call()).toMatchObject({ output: 'done before', agent: 'a' })
    expect(asked).toEqual(['a'])
  })

  it('unseen lets it go elsewhere, and never to that one again', async () => {
    const { call, asked } = await cast.scene(
      { a: losing(() => ({ state: 'unseen' })), b: losing(() => ({ state: 'unseen' })), c: succeed },
      'once',
    )
    expect(await call()).toMatchObject({ output: 'ok', agent: 'c' })
    expect(new Set(asked).size).toBe(asked.length)
  })

  it('unseen by everyone ends it: nobody who has promised not to start it is asked again', async () => {
    const { failure, asked } = await cast.scene({ a: losing(() => ({ state: 'unseen' })) }, 'once')
    expect((await failure()).code).toBe('PEER_UNREACHABLE')
    expect(asked).toEqual(['a'])
  })

  it('unknown ends it with OUTCOME_UNKNOWN and the id to reconcile by', async () => {
    const unknown = losing(() => ({ state: 'unknown' }))
    const { failure, asked, events } = await cast.scene({ a: unknown, b: unknown }, 'once')
    const error = await failure()
    expect(error.code).toBe('OUTCOME_UNKNOWN')
    expect(error.messageId).toBe(events.of('call.outcome').at(-1)?.messageId)
    expect(error.hint).toMatch(/reconcile/i)
    expect(asked).toHaveLength(1)
  })

  it('running is waited for, and asked for again', async () => {
    let asks = 0
    const outcome = {
      message_type: 'error',
      payload: { error_code: 'HANDLER_ERROR', error_message: 'x', error_source: 'tool', retryable: false },
    }
    const { failure } = await cast.scene(
      { a: losing(() => (++asks < 3 ? { state: 'running' } : { state: 'done', outcome })) },
      'once',
      { outcomePollMs: 30 },
    )
    expect((await failure()).code).toBe('HANDLER_ERROR')
    expect(asks).toBe(3)
  })

  it('an answer that comes over the new link while it is being asked for ends the search', async () => {
    let lost: Got | undefined
    const { call } = await cast.scene(
      {
        a: (got, raw) => {
          if (isWork(got)) {
            lost = got
            vanish(got, raw)
          } else {
            raw.reply(got, 'response', { output: { state: 'running' }, status: 'completed' })
            raw.reply({ ...(lost as Got), link: got.link }, 'response', {
              output: 'late but right',
              status: 'completed',
            })
          }
        },
      },
      'once',
    )
    expect(await call()).toMatchObject({ output: 'late but right', agent: 'a' })
  })

  it('no answer in time is OUTCOME_UNKNOWN too', async () => {
    const { failure } = await cast.scene({ a: losing(() => undefined) }, 'once', { outcomeTimeoutMs: 300 })
    const since = performance.now()
    expect((await failure()).code).toBe('OUTCOME_UNKNOWN')
    expect(performance.now() - since).toBeLessThan(4000)
  })
})

describe('F-12 answer that arrives after the caller gave up', () => {
  it('late, doubled and never asked-for answers are dropped and counted, and the link goes on', async () => {
    const late: Got[] = []
    const { call, failure, events, raws } = await cast.scene({
      a: (got, raw) => {
        if (got.header.timeout_ms < 1000) late.push(got)
        else succeed(got, raw)
      },
    })
    const links = events.of('link.down').length
    const healthy = Array.from({ length: 10 }, () => call())
    expect((await failure({ timeoutMs: 150 })).code).toBe('TIMEOUT')
    await Promise.all(healthy)
    const [one] = late as [Got]
    const { a } = raws as { a: RawPeer }
    for (let i = 0; i < 2; i++) succeed(one, a)
    succeed({ ...one, leaf: 'ab'.repeat(32) }, a)
    for (let i = 0; i < 5; i++) expect(await call()).toMatchObject({ output: 'ok' })
    await until(() => events.of('answer.late').length === 3)
    expect(events.of('link.down')).toHaveLength(links)
    expect(
      a.got.filter(({ header }) => header.message_type === 'cancel' && header.message_id === one.header.message_id),
      'the callee was told to stop',
    ).toHaveLength(1)
  })

  it('an answer to an earlier attempt still counts while the call goes on, over a new link of that agent', async () => {
    let first: { got: Got; raw: RawPeer } | undefined
    const { call, asked, caller } = await cast.scene({
      a: (got, raw) => answer(got, raw),
      b: (got, raw) => answer(got, raw),
    })
    // Whoever is asked first loses its link; when the other is asked, which says nothing, the first comes back and answers.
    const answer = (got: Got, raw: RawPeer): void => {
      if (!first) {
        first = { got, raw }
        vanish(got, raw)
        return
      }
      const { got: earlier, raw: early } = first
      void early
        .link(caller.addresses[0] as string)
        .then((link) => early.reply({ ...earlier, link }, 'response', { output: 'late', status: 'completed' }))
    }
    expect(await call()).toMatchObject({ output: 'late', agent: asked[0] })
    expect(asked).toHaveLength(2)
  })
})
