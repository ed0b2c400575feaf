import {
  capability,
  ERROR_TABLE,
  type ErrorCode,
  type ErrorRow,
  type HermesError,
  isHermesError,
} from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import { type Got, type RawPeer, rawPeer } from './raw.ts'
import { eventsOf, realPeer, until } from './team.ts'

type Effects = 'none' | 'idempotent' | 'once'
const contractOf = (effects: Effects) =>
  capability('work', { description: 'Works.', input: z.any(), output: z.any(), effects })

/** A real caller that knows providers which answer each request as the test says. */
async function scene(
  providers: Record<string, (got: Got, raw: RawPeer) => void>,
  effects: Effects = 'none',
  tuning: object = {},
) {
  const names = Object.keys(providers)
  const caller = await realPeer('caller', {
    knows: names,
    tuning: { retryBackoffMs: 20, retryBackoffCapMs: 40, ...tuning },
  })
  const asked: string[] = []
  const raws: Record<string, RawPeer> = {}
  for (const [name, answer] of Object.entries(providers)) {
    raws[name] = await rawPeer(name, {
      offers: [{ name: 'work', effects }],
      onRequest: (got, raw) => {
        if (got.header.target_capability === 'work') asked.push(name)
        answer(got, raw)
      },
    })
    await caller.connect((raws[name] as RawPeer).address)
  }
  await known(caller, names)
  const work = contractOf(effects)
  const call = (options: object = {}) => caller.request(work, 1, { timeoutMs: 5000, ...options })
  const failure = async (options: object = {}): Promise<HermesError> => {
    try {
      await call(options)
    } catch (error) {
      if (isHermesError(error)) return error
      throw error
    }
    throw new Error('it succeeded')
  }
  return { caller, asked, call, failure, raws, events: eventsOf(caller) }
}

/** Resolves when the caller has the manifest of each. */
const known = (caller: Peer, names: readonly string[]) => Promise.all(names.map((name) => caller.manifest(name)))

const refuse =
  (code: string, more: object = {}) =>
  (got: Got, raw: RawPeer) =>
    raw.reply(got, 'error', {
      error_code: code,
      error_message: 'as the test says',
      error_source: 'receiver',
      retryable: true,
      ...more,
    })
const succeed = (got: Got, raw: RawPeer) => raw.reply(got, 'response', { output: 'ok', status: 'completed' })
const vanish = (got: Got, raw: RawPeer) => {
  for (const link of raw.links(got.header.sender.agent_id)) link.destroy(new Error('the link breaks') as never)
}

const rows = Object.entries(ERROR_TABLE) as [ErrorCode, ErrorRow][]
const onWire = rows.filter(([, row]) => !row.local)

describe('F-15 wrong idea of what is worth retrying', () => {
  it('each code of the table that is not retryable ends the call after one attempt', async () => {
    const codes = onWire.filter(([, row]) => !row.retryable).map(([code]) => code)
    expect(codes.length).toBeGreaterThan(20)
    let next = ''
    const answer = (got: Got, raw: RawPeer) => refuse(next, { retryable: false })(got, raw)
    const { asked, failure } = await scene({ a: answer, b: answer })
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

  it.each(['VALIDATION_ERROR', 'NOT_ALLOWED', 'HANDLER_ERROR', 'MESSAGE_CONFLICT'])(
    'a peer that calls %s retryable is not believed',
    async (code) => {
      const { asked, failure } = await scene({ a: refuse(code), b: refuse(code) })
      expect((await failure()).code).toBe(code)
      expect(asked).toHaveLength(1)
    },
  )

  it.each([
    ['an unknown code of a newer peer', 'FLUX_CAPACITOR_LOW'],
    ['a code that only a peer itself may say', 'STORAGE_FAILED'],
    ['a code that is none', 'please retry'],
    ['an empty code', ''],
  ])('%s is not retried, whatever it says of itself', async (_, code) => {
    const { asked, failure } = await scene({ a: refuse(code), b: refuse(code) })
    const error = await failure()
    expect(error.retryable).toBe(false)
    expect(asked).toHaveLength(1)
  })

  it.each(['BUSY', 'DRAINING', 'CAPABILITY_NOT_FOUND', 'PEER_RESTARTED', 'STALE_SEQUENCE'])(
    '%s goes on to another candidate, also for effects once: it was not started',
    async (code) => {
      const { asked, call } = await scene({ a: refuse(code), b: refuse(code), c: succeed }, 'once')
      const answer = await call()
      expect(answer).toMatchObject({ output: 'ok', agent: 'c' })
      expect(new Set(asked).size).toBe(asked.length)
      expect(answer.attempts.map(({ code: one }) => one)).toEqual(new Array(asked.length - 1).fill(code))
    },
  )

  it('one call has at most three attempts, whatever is retried on which level', async () => {
    const providers = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, refuse('BUSY')]))
    const { asked, failure, events, caller } = await scene(providers)
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
    const { call, events } = await scene({
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

  it('a wait that does not fit into the deadline is not begun: the error comes at once', async () => {
    const { failure } = await scene({ a: refuse('BUSY', { retry_after_ms: 60_000 }) })
    const since = performance.now()
    expect((await failure({ timeoutMs: 20_000 })).code).toBe('BUSY')
    expect(performance.now() - since).toBeLessThan(10_000)
  })

  it('when the budget is used up, nothing is retried: the callers of a failing agent do not multiply', async () => {
    const { asked, failure } = await scene({ a: refuse('BUSY') }, 'none', { retryBudget: 2, retryRefill: 0.1 })
    for (let i = 0; i < 10; i++) await failure()
    // 10 calls, a budget of 2, and one more earned by ten calls.
    expect(asked.length).toBeLessThanOrEqual(10 + 2 + 1)
  })

  it.each(['none', 'idempotent'] as const)(
    'a link that is lost after the request went out: effects %s go elsewhere at once',
    async (effects) => {
      const { asked, call } = await scene({ a: vanish, b: vanish, c: succeed }, effects)
      const answer = await call()
      expect(answer.agent).toBe('c')
      expect(asked.at(-1)).toBe('c')
      expect(answer.attempts.every(({ code }) => code === 'PEER_UNREACHABLE')).toBe(true)
    },
  )

  it('a link that is lost after the request went out: effects once are not sent again without asking what became of it', async () => {
    const { asked, failure } = await scene({ a: vanish }, 'once', { outcomeTimeoutMs: 400 })
    const error = await failure()
    expect(error.code).toBe('OUTCOME_UNKNOWN')
    expect(error.messageId).toMatch(/^msg_/)
    expect(asked).toHaveLength(1)
  })
})

describe('effects once, when the link is lost: hermes.outcome decides', () => {
  /** The first provider loses its link, and when it is asked again it says `state`. */
  const losing = (state: (got: Got) => object | undefined) => (got: Got, raw: RawPeer) => {
    if (got.header.target_capability === 'work') vanish(got, raw)
    else {
      const output = state(got)
      if (output) raw.reply(got, 'response', { output, status: 'completed' })
    }
  }

  it('done ends the call with that outcome', async () => {
    const outcome = { message_type: 'response', payload: { output: 'done before', status: 'completed' } }
    const { call, asked } = await scene({ a: losing(() => ({ state: 'done', outcome })) }, 'once')
    expect(await call()).toMatchObject({ output: 'done before', agent: 'a' })
    expect(asked).toEqual(['a'])
  })

  it('unseen lets it go elsewhere, and never to that one again', async () => {
    const { call, asked } = await scene(
      { a: losing(() => ({ state: 'unseen' })), b: losing(() => ({ state: 'unseen' })), c: succeed },
      'once',
    )
    expect(await call()).toMatchObject({ output: 'ok', agent: 'c' })
    expect(new Set(asked).size).toBe(asked.length)
  })

  it('unseen by everyone ends it: nobody who has promised not to start it is asked again', async () => {
    const { failure, asked } = await scene({ a: losing(() => ({ state: 'unseen' })) }, 'once')
    expect((await failure()).code).toBe('PEER_UNREACHABLE')
    expect(asked).toEqual(['a'])
  })

  it('unknown ends it with OUTCOME_UNKNOWN and the id to reconcile by', async () => {
    const { failure, events } = await scene({ a: losing(() => ({ state: 'unknown' })), b: succeed }, 'once', {
      retryBudget: 1,
    })
    // Whichever is asked first: only the one that lost its link leads there.
    for (let i = 0; i < 20; i++) {
      const before = events.of('call.outcome').length
      const error = await failure().catch(() => undefined)
      if (events.of('call.outcome').length > before) {
        expect(error?.code).toBe('OUTCOME_UNKNOWN')
        expect(error?.messageId).toBe(events.of('call.outcome').at(-1)?.messageId)
        expect(error?.hint).toMatch(/reconcile/i)
        return
      }
    }
    expect.unreachable()
  })

  it('running is waited for, and asked for again', async () => {
    let asks = 0
    const outcome = {
      message_type: 'error',
      payload: { error_code: 'HANDLER_ERROR', error_message: 'x', error_source: 'tool', retryable: false },
    }
    const { failure } = await scene(
      { a: losing(() => (++asks < 3 ? { state: 'running' } : { state: 'done', outcome })) },
      'once',
      { outcomePollMs: 30 },
    )
    expect((await failure()).code).toBe('HANDLER_ERROR')
    expect(asks).toBe(3)
  })

  it('an answer that comes over the new link while it is being asked for ends the search', async () => {
    let lost: Got | undefined
    const { call } = await scene(
      {
        a: (got, raw) => {
          if (got.header.target_capability === 'work') {
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
    const { failure } = await scene({ a: losing(() => undefined) }, 'once', { outcomeTimeoutMs: 300 })
    const since = performance.now()
    expect((await failure()).code).toBe('OUTCOME_UNKNOWN')
    expect(performance.now() - since).toBeLessThan(4000)
  })
})

describe('F-12 answer that arrives after the caller gave up', () => {
  it('late, doubled and never asked-for answers are dropped and counted, and the link goes on', async () => {
    const late: Got[] = []
    const { call, failure, events, raws } = await scene({
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
      a.got.filter(({ header }) => header.message_type === 'cancel'),
      'the callee was told to stop',
    ).toHaveLength(1)
  })

  it('an answer of an earlier attempt still counts while the call goes on', async () => {
    const firsts: Got[] = []
    const answer = (got: Got, raw: RawPeer) => {
      if (got.header.attempt === 1) {
        firsts.push(got)
        refuse('BUSY')(got, raw)
      } else {
        const [first] = firsts as [Got]
        const owner = raw.agentId === 'a' ? 'a' : 'b'
        expect(owner).toBe(raw.agentId)
        succeed(got, raw)
        succeed(first, raw)
      }
    }
    const { call } = await scene({ a: answer, b: answer })
    expect(await call()).toMatchObject({ output: 'ok' })
  })
})
