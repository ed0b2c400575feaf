import fc from 'fast-check'
import { type Balance, type CallOptions, capability, isHermesError, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { until } from '../../packages/peer/test/waiting.ts'
import { createTeam, PATIENT } from './support/team.ts'

const errors = { REFUSED: z.object({ n: z.number() }) }
const work = capability('work', {
  description: 'Ends as it is told.',
  input: z.object({ how: z.string(), n: z.number() }),
  output: z.number(),
  errors,
  effects: 'none',
  constraints: { maxConcurrency: 3 },
})

const team = createTeam({
  tuning: { ...PATIENT, inFlightPerPeer: 6, outboxPerPeer: 4, retryBackoffMs: 5, retryBackoffCapMs: 10 },
})
let desk: Peer
const handlers = new Map<string, { started: Set<string>; ended: Set<string> }>()

beforeAll(async () => {
  for (const name of ['a', 'b']) {
    const told = { started: new Set<string>(), ended: new Set<string>() }
    handlers.set(name, told)
    await team.start(name, (peer) => {
      peer.events.on('handler.started', ({ messageId }) => told.started.add(messageId))
      peer.events.on('handler.ended', ({ messageId }) => told.ended.add(messageId))
      return peer.provide(work, async ({ how, n }, { error, signal }) => {
        if (how === 'declared') throw error('REFUSED', { n })
        if (how === 'throws') throw new Error('x')
        if (how === 'unsendable') return Number.NaN
        if (how === 'slow') await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        return n
      })
    })
  }
  desk = await team.start('desk')
  await Promise.all([desk.manifest('a'), desk.manifest('b')])
})
afterAll(() => team.stop())

const HOWS = ['fine', 'fine', 'declared', 'throws', 'unsendable', 'slow'] as const

/** Begins one call; it ends by itself: slow ones by their deadline or their signal. */
function begin(how: (typeof HOWS)[number], n: number, cancelMs: number | undefined, agent: string | undefined) {
  const stop = new AbortController()
  const options: CallOptions = {
    signal: stop.signal,
    timeoutMs: how === 'slow' ? 60 : 10_000,
    ...(agent ? { agent } : {}),
  }
  const call = desk.call(work, { how, n }, options)
  if (cancelMs !== undefined) setTimeout(() => stop.abort(), cancelMs)
  return call.then(
    () => 'succeeded' as const,
    (error: unknown) => {
      if (!isHermesError(error)) throw error
      expect(error.code).not.toBe('INTERNAL')
      return 'failed' as const
    },
  )
}

describe('the balance', () => {
  it('always holds: calls = succeeded + failed + in flight, and says what really happened', async () => {
    const one = fc.record({
      how: fc.constantFrom(...HOWS),
      cancelMs: fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined, freq: 1 }),
      agent: fc.option(fc.constantFrom('a', 'b', 'ghost'), { nil: undefined, freq: 1 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 14 }), async (mix) => {
        const before = desk.balance()
        const tally = { succeeded: 0, failed: 0 }
        const wrong: Balance[] = []
        const check = (event: { type: string }) => {
          const now = desk.balance()
          const open = mix.length - tally.succeeded - tally.failed
          if (now.calls !== now.succeeded + now.failed + now.inFlight) wrong.push(now)
          if (now.inFlight < 0 || now.inFlight > open + 1) wrong.push(now)
          return event
        }
        const off = desk.events.onAny(check)
        // An agent that nobody knows costs a look-up: those end by their signal.
        const calls = mix.map(({ how, cancelMs, agent }, n) =>
          begin(how, n, agent === 'ghost' ? (cancelMs ?? 5) : cancelMs, agent),
        )
        expect(desk.balance()).toMatchObject({ calls: before.calls + mix.length })
        for (const call of calls) void call.then((end) => tally[end]++)
        await Promise.all(calls)
        off()
        const after = desk.balance()
        expect(wrong).toEqual([])
        expect(after).toMatchObject({
          calls: before.calls + mix.length,
          succeeded: before.succeeded + tally.succeeded,
          failed: before.failed + tally.failed,
          inFlight: 0,
        })
      }),
      { numRuns: 30 },
    )
    expect(desk.balance().succeeded).toBeGreaterThan(5)
    expect(desk.balance().failed).toBeGreaterThan(5)
  })

  it('at the provider each handler that was started has ended, and is told to have', async () => {
    for (const [name, { started, ended }] of handlers) {
      const open = () => [...started].filter((id) => !ended.has(id))
      await until(() => open().length === 0, `${name}: an end for each of ${started.size} starts`, 3000)
      expect(started.size).toBeGreaterThan(0)
    }
  })

  it('a call that is refused before it begins is none', async () => {
    const before = desk.balance()
    await expect(desk.call(work, { how: 5 } as never)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' })
    await expect(desk.call(work, { how: 'fine', n: 1 }, { timeoutMs: -1 })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
    expect(desk.balance()).toEqual(before)
  })
})
