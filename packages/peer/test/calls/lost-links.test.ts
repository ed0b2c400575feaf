import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cast, createCast, isWork, succeed, vanish } from './providers.ts'
import type { Got, RawPeer } from './raw.ts'
import { until } from './team.ts'

let cast: Cast
beforeAll(async () => {
  cast = await createCast(['a', 'b', 'c', 'd', 'e'])
})
afterAll(() => cast.stop())

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
      a.got.filter(({ header }) => header.message_type === 'cancel'),
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
