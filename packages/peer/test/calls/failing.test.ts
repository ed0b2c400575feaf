import { capability, type HermesError, isHermesError } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'

const work = capability('work', {
  description: 'Works.',
  input: z.number(),
  output: z.string(),
  errors: { NO_SUCH_FILE: z.string() },
  effects: 'none',
})

type Way = 'well' | 'badly' | 'never' | 'slowly' | 'declared'

/** Providers whose ways a test may change, and a caller that paces its calls. */
async function scene(net: TestNetwork, ways: Record<string, Way>) {
  const started: string[] = []
  for (const name of Object.keys(ways)) {
    const peer = await net.peer(name)
    peer.provide(work, async (_, ctx) => {
      started.push(name)
      const way = ways[name]
      if (way === 'badly') throw new Error('as the test says')
      if (way === 'declared') throw ctx.error('NO_SUCH_FILE', name)
      if (way === 'never') await net.sleep('1h', { signal: ctx.signal })
      await net.sleep(way === 'slowly' ? '20s' : '20ms')
      return name
    })
  }
  const caller: Peer = await net.peer('caller')
  for (const name of Object.keys(ways)) {
    for (;;) {
      const found = await net.until(caller.find({ capability: 'work', agent: name }))
      if (found.some(({ usable }) => usable)) break
      await net.advance('100ms')
    }
    await net.until(caller.manifest(name))
  }
  const call = (options: object = {}) => caller.call(work, 1, { timeoutMs: 1000, ...options })
  const failure = async (promise: Promise<unknown>): Promise<HermesError | undefined> => {
    try {
      await promise
    } catch (error) {
      if (isHermesError(error)) return error
      throw error
    }
    return undefined
  }
  /** Calls at a pace; the codes they end with. */
  const pace = async (count: number, everyMs: number) => {
    const codes: Promise<string>[] = []
    for (let i = 0; i < count; i++) {
      codes.push(failure(call()).then((error) => error?.code ?? 'OK'))
      await net.advance(everyMs)
    }
    return net.until(Promise.all(codes))
  }
  return { caller, call, failure, pace, started, ways }
}

describe('F-31 failing instance keeps, or attracts, the traffic', () => {
  it('one that fails at once and one that hangs get under 5 % of the calls after the first; both come back within a minute', async () => {
    await using net = testNetwork({ seed: 31 })
    const { pace, started, ways } = await scene(net, { bad: 'badly', hung: 'never', good: 'well' })
    await pace(60, 200)
    started.length = 0
    await pace(300, 200)
    const share = started.filter((name) => name !== 'good').length / started.length
    expect(started.length).toBeGreaterThanOrEqual(300)
    expect(share).toBeLessThan(0.05)

    ways.bad = 'well'
    ways.hung = 'well'
    await pace(300, 200)
    started.length = 0
    const codes = await pace(100, 200)
    expect(codes.every((code) => code === 'OK')).toBe(true)
    expect(new Set(started)).toEqual(new Set(['bad', 'hung', 'good']))
  })

  it('when all fail, calls end with why they fail, and go through again after the probe', async () => {
    await using net = testNetwork({ seed: 32 })
    const { call, failure, ways, caller, started } = await scene(net, { a: 'badly', b: 'badly' })
    const codes = new Set<string | undefined>()
    for (let i = 0; i < 30; i++) codes.add((await net.until(failure(call())))?.code)
    expect(codes).toEqual(new Set(['HANDLER_ERROR', 'BREAKER_OPEN']))
    const error = await net.until(failure(call()))
    expect(error?.code).toBe('BREAKER_OPEN')
    expect(error?.message).toContain('HANDLER_ERROR')
    expect(error?.details.candidates).toHaveLength(2)
    expect(started.length).toBe(10)
    ways.a = 'well'
    ways.b = 'well'
    await net.advance(error?.retryAfterMs ?? 0)
    expect(['a', 'b']).toContain(await net.until(call()))
    const { calls, succeeded, failed, inFlight } = caller.balance()
    expect(calls).toBe(succeeded + failed)
    expect(inFlight).toBe(0)
  })

  it('of many calls at once exactly one is the probe', async () => {
    await using net = testNetwork({ seed: 33 })
    const { call, failure, started } = await scene(net, { a: 'badly' })
    for (let i = 0; i < 5; i++) await net.until(failure(call()))
    await net.advance('10s')
    started.length = 0
    const errors = await net.until(Promise.all(Array.from({ length: 20 }, () => failure(call()))))
    expect(started).toHaveLength(1)
    expect(errors.filter((error) => error?.code === 'HANDLER_ERROR')).toHaveLength(1)
    expect(errors.filter((error) => error?.code === 'BREAKER_OPEN')).toHaveLength(19)
  })

  it('declared errors, cancels and refusals open nothing', async () => {
    await using net = testNetwork({ seed: 34 })
    const { call, failure, ways, started } = await scene(net, { a: 'declared' })
    for (let i = 0; i < 8; i++) expect((await net.until(failure(call())))?.declared?.name).toBe('NO_SUCH_FILE')
    ways.a = 'never'
    for (let i = 0; i < 8; i++) {
      const stop = new AbortController()
      const before = started.length
      const ended = failure(call({ signal: stop.signal }))
      await net.timeline.runUntil(() => started.length > before)
      stop.abort()
      expect((await net.until(ended))?.code).toBe('CANCELLED')
    }
    ways.a = 'well'
    expect(await net.until(call())).toBe('a')
  })

  it('the loss of one link with many calls on it opens nothing', async () => {
    await using net = testNetwork({ seed: 35 })
    const { call, started, caller } = await scene(net, { a: 'slowly' })
    const calls = Array.from({ length: 20 }, () => call({ timeoutMs: 30_000 }))
    await net.timeline.runUntil(() => started.length === 20)
    net.faults.cut(net.peerId('a'), net.peerId('caller'))
    await net.advance('5s')
    const [a] = await net.until(caller.find({ capability: 'work' }))
    expect(a).toMatchObject({ agentId: 'a', usable: true })
    expect(await net.until(Promise.all(calls))).toEqual(calls.map(() => 'a'))
  })
})
