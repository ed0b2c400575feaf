import { describe, expect, it } from 'vitest'
import { directing, keyNamed, only, report } from './support.ts'

describe('a presence report', () => {
  it('makes an agent known, with what it says of itself', () => {
    const { directory, log } = directing()
    expect(
      directory.heard(report('a', { load: 12, queue_depth: 3, success_rate_15m: 0.5, capabilities: ['x', 'y'] })),
    ).toBe('accept')
    expect(directory.get('a')).toMatchObject({
      status: 'online',
      load: 12,
      queueDepth: 3,
      success: 0.5,
      capabilities: ['x', 'y'],
      addresses: ['/ip4/127.0.0.1/tcp/4001/p2p/a'],
    })
    expect(directory.keysOf('a').map(({ fingerprint }) => fingerprint)).toEqual([keyNamed('a').publicKey.fingerprint])
    expect(log.newcomers, 'somebody new should hear of us').toBeGreaterThan(0)
  })

  it('of an agent that trust does not admit travels on, but changes nothing', () => {
    const { directory, log } = directing({ trust: only('a') })
    expect(directory.heard(report('stranger'))).toBe('accept')
    expect(directory.heard(report('a', { as: 'impostor' }))).toBe('accept')
    expect([...directory.all()]).toEqual([])
    expect(log.newcomers).toBe(0)
  })

  it('F-01 under a known name with another key changes nothing of what is known', () => {
    const { directory } = directing({ trust: only('a') })
    directory.heard(report('a', { load: 5 }))
    directory.heard(report('a', { as: 'impostor', load: 0, epoch: 999, addresses: ['/ip4/127.0.0.1/tcp/6666'] }))
    expect(directory.get('a')).toMatchObject({ load: 5, epoch: 100, addresses: ['/ip4/127.0.0.1/tcp/4001/p2p/a'] })
  })

  it('F-26 of ourselves in a later life means that another process runs with our key', () => {
    const { directory, log } = directing()
    expect(directory.heard(report('me', { epoch: 50 }))).toBe('ignore')
    expect(directory.heard(report('me', { epoch: 49 }))).toBe('ignore')
    expect(log.duplicates).toEqual([])
    expect(directory.heard(report('me', { epoch: 51 }))).toBe('ignore')
    expect(log.duplicates.map(({ code }) => code)).toEqual(['DUPLICATE_AGENT'])
    expect([...directory.all()]).toEqual([])
  })

  it('that says draining takes the agent out of the choice, and up brings it back', () => {
    const { directory, watch } = directing()
    const { changes } = watch({ agent: 'a' })
    directory.heard(report('a', { counter: 1 }))
    directory.heard(report('a', { counter: 2, state: 'draining' }))
    expect(directory.get('a')?.status).toBe('draining')
    directory.heard(report('a', { counter: 3 }))
    expect(directory.get('a')?.status).toBe('online')
    expect(changes[0]).toBe('a joined')
  })
})

describe('the order of reports', () => {
  it('is by (epoch, counter): older and repeated ones are ignored', () => {
    const { directory } = directing()
    directory.heard(report('a', { epoch: 100, counter: 5, load: 5 }))
    for (const older of [
      { epoch: 100, counter: 5 },
      { epoch: 100, counter: 4 },
      { epoch: 99, counter: 900 },
    ]) {
      expect(directory.heard(report('a', { ...older, load: 99 }))).toBe('ignore')
    }
    expect(directory.get('a')?.load).toBe(5)
    expect(directory.heard(report('a', { epoch: 100, counter: 6, load: 6 }))).toBe('accept')
    expect(directory.heard(report('a', { epoch: 101, counter: 0, load: 7 }))).toBe('accept')
    expect(directory.get('a')?.load).toBe(7)
  })

  it('is the life of the link too: a report of an earlier life is ignored after a link of a later one', () => {
    const { directory, up } = directing()
    up('a', { epoch: 200 })
    expect(directory.heard(report('a', { epoch: 199, counter: 9 }))).toBe('ignore')
    expect(directory.heard(report('a', { epoch: 200, counter: 0 }))).toBe('accept')
  })

  it('does not bring back an agent that has left: gossip may come late', () => {
    const { directory, watch } = directing()
    const { changes } = watch({ agent: 'a' })
    directory.heard(report('a', { counter: 1 }))
    directory.heard(report('a', { counter: 3, state: 'leaving' }))
    expect(directory.heard(report('a', { counter: 2 }))).toBe('ignore')
    expect(directory.get('a')?.status).not.toBe('online')
    expect(changes).toEqual(['a joined', 'a left'])
  })

  it('brings back an agent that has left in its next life', () => {
    const { directory, watch } = directing()
    const { changes } = watch({ agent: 'a' })
    directory.heard(report('a', { counter: 1 }))
    directory.heard(report('a', { counter: 2, state: 'leaving' }))
    expect(directory.heard(report('a', { epoch: 101, counter: 0 }))).toBe('accept')
    expect(changes).toEqual(['a joined', 'a left', 'a joined'])
  })
})

describe('the rate of reports', () => {
  it('is bounded per agent: what is too frequent is ignored', async () => {
    const { directory, advance } = directing()
    const verdicts = Array.from({ length: 20 }, (_, counter) =>
      directory.heard(report('a', { counter, load: counter })),
    )
    const accepted = verdicts.filter((verdict) => verdict === 'accept').length
    expect(accepted).toBeGreaterThanOrEqual(1)
    // Four, and the first, which is a change of state too.
    expect(accepted).toBeLessThanOrEqual(5)
    expect(verdicts.slice(accepted).every((verdict) => verdict === 'ignore')).toBe(true)
    expect(directory.get('a')?.load).toBe(accepted - 1)
    expect(directory.heard(report('b')), 'another agent has its own').toBe('accept')
    await advance(10_001)
    expect(directory.heard(report('a', { counter: 21, load: 21 }))).toBe('accept')
  })

  it('does not hold up a change of state: an agent that says it leaves is believed at once', () => {
    const { directory } = directing()
    for (let counter = 0; counter < 10; counter++) directory.heard(report('a', { counter }))
    expect(directory.heard(report('a', { counter: 10, state: 'leaving' }))).toBe('accept')
    expect(directory.get('a')?.status).not.toBe('online')
  })

  it('bounds changes of state too: at most 3 more in 10 s', () => {
    const { directory } = directing()
    let accepted = 0
    for (let counter = 0; counter < 40; counter++) {
      if (directory.heard(report('a', { counter, state: counter % 2 ? 'draining' : 'up' })) === 'accept') accepted++
    }
    expect(accepted).toBeLessThanOrEqual(4 + 3)
  })
})

describe('liveness', () => {
  it('goes from online to suspect after 3 missed reports, to offline after 6', async () => {
    const { directory, advance, watch } = directing()
    const { changes } = watch({ agent: 'a' })
    directory.heard(report('a'))
    await advance(30_000)
    expect(directory.get('a')?.status).toBe('online')
    await advance(1000)
    expect(directory.get('a')?.status).toBe('suspect')
    await advance(29_000)
    expect(directory.get('a')?.status).toBe('suspect')
    await advance(1000)
    expect(directory.get('a')?.status).toBe('offline')
    expect(changes).toEqual(['a joined', 'a suspect', 'a offline'])
  })

  it('comes back with a report, from suspect and from offline', async () => {
    const { directory, advance } = directing()
    directory.heard(report('a', { counter: 1 }))
    await advance(35_000)
    directory.heard(report('a', { counter: 2 }))
    expect(directory.get('a')?.status).toBe('online')
    await advance(65_000)
    expect(directory.get('a')?.status).toBe('offline')
    directory.heard(report('a', { counter: 3 }))
    expect(directory.get('a')?.status).toBe('online')
  })

  it('any traffic of the link counts as life', async () => {
    const { directory, advance, up, clock } = directing()
    const link = up('a')
    for (let i = 0; i < 20; i++) {
      await advance(10_000)
      Object.assign(link, { heardAt: clock.monotonic() })
    }
    expect(directory.get('a')?.status).toBe('online')
  })

  it('ends with the last link: out of the ranking at once', () => {
    const { directory, up, down, watch } = directing()
    const { changes } = watch({ agent: 'a' })
    up('a')
    down('a')
    expect(directory.get('a')?.status).toBe('offline')
    expect(changes).toEqual(['a joined', 'a offline'])
  })

  it('is forgotten half an hour after it went offline', async () => {
    const { directory, advance } = directing()
    directory.heard(report('a'))
    await advance(25 * 60_000)
    expect(directory.get('a')).toBeDefined()
    await advance(10 * 60_000)
    expect(directory.get('a')).toBeUndefined()
  })
})

describe('the directory', () => {
  it('is bounded: the longest silent goes first', async () => {
    const { directory, advance } = directing({ tuning: { directoryAgents: 3 } })
    for (const name of ['a', 'b', 'c']) {
      directory.heard(report(name, { counter: 0 }))
      await advance(10)
    }
    directory.heard(report('a', { counter: 1 }))
    directory.heard(report('d'))
    expect([...directory.all()].map(({ agentId }) => agentId).sort()).toEqual(['a', 'c', 'd'])
  })
})
