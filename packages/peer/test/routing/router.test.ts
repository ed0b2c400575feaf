import { describe, expect, it } from 'vitest'
import { named, provider, routing, signal } from './scene.ts'
import { entry } from './support.ts'

describe('hard filters', () => {
  it.each([
    ['is offline', provider('x', { status: 'offline' }), {}, 'offline'],
    ['is about to stop', provider('x', { status: 'draining' }), {}, 'about to stop'],
    ['is the caller itself', provider('me'), {}, 'the caller itself'],
    [
      'does not provide it by its manifest, though it announced it',
      entry('x', { offers: [{ name: 'other' }], capabilities: ['work'] }),
      {},
      'does not provide work',
    ],
    ['does not announce it', entry('x', { capabilities: ['other'] }), {}, 'does not provide work'],
    ['has no such label', provider('x'), { where: { language: 'ts' } }, 'no label language'],
    [
      'has another value',
      provider('x', { offers: [{ name: 'work', labels: { language: 'py' } }] }),
      { where: { language: 'ts' } },
      'language is py',
    ],
    [
      'has other values',
      provider('x', { offers: [{ name: 'work', labels: { language: ['py', 'go'] } }] }),
      { where: { language: 'ts' } },
      'language is py, go',
    ],
    [
      'has a value that only contains it',
      provider('x', { offers: [{ name: 'work', labels: { language: 'tsx' } }] }),
      { where: { language: 'ts' } },
      'language is tsx',
    ],
    [
      'has no manifest yet to tell labels from',
      entry('x', { capabilities: ['work'] }),
      { where: { language: 'ts' } },
      'manifest is not known',
    ],
    ['waits for this very call', provider('x'), { path: ['a#b', 'x#work'] }, 'would wait for itself: a#b → x#work'],
    [
      'does not take the input',
      provider('x', {
        offers: [{ name: 'work', input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } }],
      }),
      { input: { value: { n: 'five' }, schema: undefined } },
      '/n',
    ],
    [
      'has a schema that cannot be used',
      provider('x', { offers: [{ name: 'work', input: { $ref: 'http://127.0.0.1/schema' } }] }),
      { input: { value: {}, schema: undefined } },
      'input schema cannot be used',
    ],
  ] as const)('leave out who %s, and say why', async (_, one, more, why) => {
    const { rank } = routing([provider('good', { offers: [{ name: 'work', labels: { language: 'ts' } }] }), one])
    const candidates = await rank({ ...more, ...('input' in more ? { input: more.input } : {}) })
    const left = candidates.find(({ agentId }) => agentId === one.agentId)
    expect(left).toMatchObject({ usable: false, score: Number.NaN })
    expect(left?.reasons).toEqual([expect.stringContaining(why)])
    expect(candidates.at(-1)?.agentId, 'after the usable ones').toBe(one.agentId)
  })

  it.each([
    ['the label', { language: 'ts' }],
    ['a list with the label in it', { language: ['py', 'ts'] }],
    ['it among others', { language: 'ts', size: 'big' }],
  ])('let pass who has %s', async (_, labels) => {
    const { choose } = routing([provider('x', { offers: [{ name: 'work', labels }] })])
    expect(named(await choose({ where: { language: 'ts' } }))).toEqual(['x'])
  })

  it('let pass a call back to an agent on another capability', async () => {
    const { choose } = routing([provider('x')])
    expect(named(await choose({ path: ['x#ask'] }))).toEqual(['x'])
  })

  it('let pass an agent that is only suspected, at half its score', async () => {
    const { rank } = routing([provider('sure'), provider('suspect', { status: 'suspect' })])
    const [sure, suspect] = await rank()
    expect(suspect).toMatchObject({ agentId: 'suspect', usable: true })
    expect(suspect?.score).toBeCloseTo((sure?.score as number) / 2, 10)
    expect(suspect?.reasons).toContain('silent for a while')
  })
})

describe('the choice', () => {
  it('keeps three', async () => {
    const { choose } = routing(['a', 'b', 'c', 'd', 'e'].map((name) => provider(name)))
    expect(await choose()).toHaveLength(3)
  })

  it('asks the directory anew when told to', async () => {
    const { router, asked } = routing([provider('a')])
    await router.choose({ capability: 'work', path: [] }, { signal, fresh: true })
    await router.choose({ capability: 'work', path: [] }, { signal })
    expect(asked).toEqual([{ fresh: true }, { fresh: false }])
  })

  it('explains each candidate: load, latency, success, what is in flight', async () => {
    const { rank, measurements } = routing([provider('a', { load: 12 })])
    for (let i = 0; i < 9; i++) {
      measurements.begin('a', 'work')
      measurements.end('a', 'work', true, 84)
    }
    measurements.begin('a', 'work')
    measurements.end('a', 'work', false, 84)
    measurements.begin('a', 'work')
    const [a] = await rank()
    expect(a).toMatchObject({ load: 12, p50Ms: 84, measured: 10 })
    expect(a?.reasons).toEqual(['load 12', 'p50 84 ms', '90 % of 10 calls (measured here)', '1 in flight from here'])
  })

  it('prefers, other things equal, who had the last call of the interaction', async () => {
    const { router, rank } = routing([provider('a'), provider('b')])
    router.remember('corr_AAAAAAAAAAAAAAAA', 'b', false)
    const [first, second] = await rank({ correlationId: 'corr_AAAAAAAAAAAAAAAA' })
    expect(first?.agentId).toBe('b')
    expect((first?.score as number) - (second?.score as number)).toBeCloseTo(0.1, 10)
    expect(first?.reasons).toContain('had the last call of this interaction')
  })

  it('sends what confirms a plan to the agent that made it, however much better others are', async () => {
    for (let seed = 0; seed < 40; seed++) {
      const { router, choose, measurements } = routing(
        [provider('best'), provider('planner', { load: 90 }), provider('new')],
        seed,
      )
      for (let i = 0; i < 10; i++) {
        for (const [name, ms] of [
          ['best', 1],
          ['planner', 900],
        ] as const) {
          measurements.begin(name, 'work')
          measurements.end(name, 'work', true, ms)
        }
      }
      router.remember('corr_AAAAAAAAAAAAAAAA', 'planner', true)
      expect(named(await choose({ correlationId: 'corr_AAAAAAAAAAAAAAAA' }))[0], `seed ${seed}`).toBe('planner')
      expect(named(await choose({ correlationId: 'corr_BBBBBBBBBBBBBBBB' }))[0]).not.toBe('planner')
    }
  })

  it('sends it elsewhere when that agent cannot serve it any more', async () => {
    const { router, choose } = routing([provider('a'), provider('planner', { status: 'offline' })])
    router.remember('corr_AAAAAAAAAAAAAAAA', 'planner', true)
    expect(named(await choose({ correlationId: 'corr_AAAAAAAAAAAAAAAA' }))).toEqual(['a'])
  })

  it('breaks ties by cost: of equals the cheaper comes first more often than by chance', async () => {
    const of = (agentId: string, costLevel: number) => provider(agentId, { offers: [{ name: 'work', costLevel }] })
    const { choose } = routing([of('dear', 5), of('cheap', 1)], 'ties')
    let cheap = 0
    for (let i = 0; i < 200; i++) if ((await choose())[0]?.agentId === 'cheap') cheap++
    expect(cheap).toBeGreaterThan(130)
  })

  it('does not let cost outweigh a better score', async () => {
    const of = (agentId: string, costLevel: number, load: number) =>
      provider(agentId, { load, offers: [{ name: 'work', costLevel }] })
    const { choose } = routing([of('dear', 5, 0), of('cheap', 1, 60)])
    expect(named(await choose())).toEqual(['dear', 'cheap'])
  })
})

describe('nobody to choose', () => {
  it('is NO_CANDIDATE with everyone who was considered and why not', async () => {
    const { refusal } = routing([provider('x', { status: 'offline' }), entry('y', { offers: [{ name: 'other' }] })])
    const error = await refusal()
    expect(error.code).toBe('NO_CANDIDATE')
    expect(error.message).toContain('work')
    expect(error.details).toEqual({
      candidates: [
        { agent_id: 'x', reason: expect.stringMatching(/^offline since \d\d:\d\d$/) },
        { agent_id: 'y', reason: 'does not provide work' },
      ],
    })
  })

  it('says when nobody is known at all, and what to check', async () => {
    const error = await routing([]).refusal({ agent: 'ghost' })
    expect(error.code).toBe('NO_CANDIDATE')
    expect(error.message).toContain('capability work at agent ghost')
    expect(error.hint).toMatch(/bootstrap/)
  })

  it('is CALL_CYCLE with the path when the call would wait for itself', async () => {
    const error = await routing([provider('x')]).refusal({ path: ['x#work', 'y#other'] })
    expect(error.code).toBe('CALL_CYCLE')
    expect(error.details).toEqual({ path: ['x#work', 'y#other', 'x#work'] })
  })

  it('is CALL_CYCLE for the one agent that was asked for, whatever others there are', async () => {
    const { refusal, choose } = routing([provider('x'), provider('z')])
    expect((await refusal({ agent: 'x', path: ['x#work'] })).code).toBe('CALL_CYCLE')
    expect(named(await choose({ path: ['x#work'] })), 'another provider is no cycle').toEqual(['z'])
  })

  it('is NO_CANDIDATE when the others fail for other reasons', async () => {
    const { refusal } = routing([provider('x'), provider('z', { status: 'offline' })])
    expect((await refusal({ path: ['x#work'] })).code).toBe('NO_CANDIDATE')
  })
})

describe('the breaker in the choice', () => {
  const fail = ({ breaker }: ReturnType<typeof routing>, agentId: string, times = 5) => {
    for (let i = 0; i < times; i++) breaker.begin(agentId, 'work')?.({ verdict: 'failed', code: 'HANDLER_ERROR' })
  }

  it('leaves out whoever fails, and says why and until when', async () => {
    const scene = routing([provider('bad'), provider('good')])
    fail(scene, 'bad')
    expect(named(await scene.choose())).toEqual(['good'])
    const [, bad] = await scene.rank()
    expect(bad).toMatchObject({
      agentId: 'bad',
      usable: false,
      reasons: ['breaker open: 5 failures in a row, the last with HANDLER_ERROR; next probe in 10.0 s'],
    })
  })

  it('when all that offer it fail, says so instead of that nobody offers it', async () => {
    const scene = routing([provider('a'), provider('b', { status: 'offline' })])
    fail(scene, 'a')
    await scene.clock.timeline.advance('4s')
    const error = await scene.refusal()
    expect(error).toMatchObject({ code: 'BREAKER_OPEN', retryable: true, retryAfterMs: 6000 })
    expect(error.message).toContain('HANDLER_ERROR')
    expect(error.details.candidates).toMatchObject([
      { agent_id: 'a' },
      { agent_id: 'b', reason: expect.stringContaining('offline') },
    ])
  })

  it('sends a share of the calls as probes once the time is over, and keeps it as the last resort for the others', async () => {
    const scene = routing([provider('bad'), provider('good')])
    fail(scene, 'bad')
    await scene.clock.timeline.advance('10s')
    let first = 0
    for (let i = 0; i < 1000; i++) {
      const order = named(await scene.choose())
      expect(order).toHaveLength(2)
      if (order[0] === 'bad') first++
    }
    // One tenth, give or take.
    expect(first).toBeGreaterThan(60)
    expect(first).toBeLessThan(150)
    const bad = (await scene.rank()).find(({ agentId }) => agentId === 'bad')
    expect(bad?.reasons[0]).toBe('breaker half-open: its next call is the probe')
    scene.breaker.begin('bad', 'work')
    expect((await scene.rank()).find(({ agentId }) => agentId === 'bad')?.reasons[0]).toContain('under way')
    expect(named(await scene.choose())).toEqual(['good'])
  })
})
