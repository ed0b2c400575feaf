import { capability, isHermesError, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { deferred, until } from '../../packages/peer/test/waiting.ts'
import { createTeam, PATIENT } from './support/team.ts'

const pair = capability('pair', {
  description: 'Two at a time.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
  constraints: { maxConcurrency: 2 },
})
const single = capability('single', {
  description: 'One at a time.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
  constraints: { maxConcurrency: 1 },
})
const free = capability('free', {
  description: 'Without limit.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
})

// Small numbers, so that few calls reach them: 4 in flight per pair of peers, 3 more may wait at the caller.
const team = createTeam({
  tuning: { ...PATIENT, inFlightPerPeer: 4, outboxPerPeer: 3, retryBackoffMs: 20, retryBackoffCapMs: 40 },
})
let desk: Peer
let worker: Peer
let running = 0
let peak = 0
const started: string[] = []
let gates = new Map<string, ReturnType<typeof deferred<void>>>()

const gateOf = (name: string) => {
  const gate = gates.get(name) ?? deferred()
  gates.set(name, gate)
  return gate
}
const gated = async (input: string) => {
  started.push(input)
  peak = Math.max(peak, ++running)
  await gateOf(input).promise
  running--
  return input
}

beforeAll(async () => {
  worker = await team.start('worker', (peer) => peer.provide(pair, gated).provide(single, gated).provide(free, gated))
  desk = await team.start('desk')
  await desk.manifest('worker')
})
afterAll(() => team.stop())
beforeEach(() => {
  gates = new Map()
  started.length = 0
  running = 0
  peak = 0
})

const codeOf = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => 'OK',
    (error: unknown) => (isHermesError(error) ? error.code : String(error)),
  )

describe('maxConcurrency', () => {
  it('so many run at a time, the others wait for their turn at the provider', async () => {
    const calls = ['1', '2', '3', '4'].map((name) => desk.call(pair, name))
    await until(() => started.length === 2)
    const queued = await waiting(2)
    expect(queued).toBe(2)
    gateOf('1').resolve()
    await until(() => started.length === 3)
    for (const name of ['2', '3', '4']) gateOf(name).resolve()
    expect(await Promise.all(calls)).toEqual(['1', '2', '3', '4'])
    expect(peak).toBe(2)
  })

  it('does not hold up another capability of the same provider', async () => {
    const held = [desk.call(single, 'held'), desk.call(single, 'waits')]
    await until(() => started.includes('held'))
    gateOf('other').resolve()
    expect(await desk.call(free, 'other')).toBe('other')
    for (const name of ['held', 'waits']) gateOf(name).resolve()
    await Promise.all(held)
  })

  it('a full queue shows as load and queue depth, so that others are chosen', async () => {
    const held = [desk.call(single, 'a'), desk.call(single, 'b')]
    await until(() => started.includes('a'))
    const [candidate] = await desk.find({ capability: 'single' })
    expect(candidate?.reasons.join()).toMatch(/taken from here|in flight from here/)
    for (const name of ['a', 'b']) gateOf(name).resolve()
    await Promise.all(held)
  })
})

/** Resolves with the jobs that wait at the worker once there are that many. */
async function waiting(count: number): Promise<number> {
  const seen = () => queuedAtWorker
  await until(() => seen() >= count)
  return seen()
}
let queuedAtWorker = 0
beforeAll(() => {
  worker.events.on('handler.queued', ({ waiting: now }) => {
    queuedAtWorker = now
  })
})
beforeEach(() => {
  queuedAtWorker = 0
})

describe('priorities', () => {
  it('order the waiting work: 5 first, and first come first served among equals', async () => {
    const calls = [desk.call(single, 'first')]
    await until(() => started.length === 1)
    for (const [name, priority] of [
      ['low', 1],
      ['urgent', 5],
      ['normal', 3],
    ] as const) {
      calls.push(desk.call(single, name, { priority }))
      await waiting(calls.length - 1)
    }
    for (const name of ['first', 'low', 'urgent', 'normal']) gateOf(name).resolve()
    await Promise.all(calls)
    expect(started).toEqual(['first', 'urgent', 'normal', 'low'])
  })

  it('of the same sender, capability and priority nothing is overtaken', async () => {
    const names = ['a', 'b', 'c', 'd']
    const calls = names.map((name) => desk.call(single, name))
    for (const name of names) gateOf(name).resolve()
    await Promise.all(calls)
    expect(started).toEqual(names)
  })
})

describe('calls in flight', () => {
  it('over the limit wait at the caller, inside their deadline, and all succeed', async () => {
    const names = ['1', '2', '3', '4', '5', '6', '7']
    const calls = names.map((name) => desk.call(free, name))
    await until(() => started.length === 4)
    gateOf('1').resolve()
    await until(() => started.length === 5)
    expect(running).toBeLessThanOrEqual(4)
    for (const name of names) gateOf(name).resolve()
    expect(await Promise.all(calls)).toEqual(names)
    expect(peak).toBeLessThanOrEqual(4)
  })

  it('beyond what may wait are QUEUE_FULL at once, and say so with a remedy', async () => {
    const names = ['1', '2', '3', '4', '5', '6', '7']
    const calls = names.map((name) => codeOf(desk.call(free, name)))
    await until(() => started.length === 4)
    const error = await desk.call(free, '8').catch((caught: unknown) => caught)
    if (!isHermesError(error)) throw error
    expect(error).toMatchObject({ code: 'QUEUE_FULL', retryable: true, hint: expect.stringMatching(/less|wait/i) })
    expect(error.message).toContain('worker')
    for (const name of names) gateOf(name).resolve()
    expect(await Promise.all(calls)).toEqual(names.map(() => 'OK'))
  })

  it('more urgent ones pass those that wait', async () => {
    const calls = ['1', '2', '3', '4'].map((name) => desk.call(free, name))
    await until(() => started.length === 4)
    calls.push(desk.call(free, 'normal'), desk.call(free, 'urgent', { priority: 5 }))
    for (const name of ['normal', 'urgent']) gateOf(name).resolve()
    gateOf('1').resolve()
    await until(() => started.length === 6)
    expect(started.slice(4)).toEqual(['urgent', 'normal'])
    for (const name of ['2', '3', '4']) gateOf(name).resolve()
    await Promise.all(calls)
  })

  it('one that waits ends by its deadline or its signal, and gives its place in line back', async () => {
    const names = ['1', '2', '3', '4']
    const held = names.map((name) => desk.call(free, name))
    // Others may have been started, too: late ones of the test before, whose callers have given them up.
    await until(() => names.every((name) => started.includes(name)))
    const stop = new AbortController()
    const waits = [
      codeOf(desk.call(free, 'late', { timeoutMs: 150 })),
      codeOf(desk.call(free, 'cancelled', { signal: stop.signal })),
    ]
    stop.abort()
    expect(await Promise.all(waits)).toEqual(['TIMEOUT', 'CANCELLED'])
    for (const name of ['1', '2', '3', '4', 'next']) gateOf(name).resolve()
    await Promise.all(held)
    expect(await desk.call(free, 'next')).toBe('next')
    expect(started).not.toContain('late')
    expect(started).not.toContain('cancelled')
    expect(desk.balance().inFlight).toBe(0)
  })

  it('F-22 places of calls that were cancelled or timed out come back', async () => {
    for (let i = 0; i < 12; i++) {
      const stop = new AbortController()
      const before = started.length
      const call = codeOf(desk.call(free, `leaves ${i}`, i % 2 ? { timeoutMs: 40 } : { signal: stop.signal }))
      if (i % 2 === 0) {
        await until(() => started.length > before)
        stop.abort()
      }
      expect(await call).toBe(i % 2 ? 'TIMEOUT' : 'CANCELLED')
      gateOf(`leaves ${i}`).resolve()
    }
    gateOf('after').resolve()
    expect(await codeOf(desk.call(free, 'after', { timeoutMs: 5000 }))).toBe('OK')
    const [candidate] = await desk.find({ capability: 'free' })
    expect(candidate?.reasons.join()).not.toContain('in flight')
  })

  it('F-31 an agent that lets calls time out is measured as failing; one whose calls are cancelled is not', async () => {
    const fresh = await team.start('fresh')
    await fresh.manifest('worker')
    const success = async () => (await fresh.find({ capability: 'free' }))[0]?.success as number
    const stop = new AbortController()
    const cancelled = codeOf(fresh.call(free, 'cancelled by us', { signal: stop.signal }))
    await until(() => started.includes('cancelled by us'))
    stop.abort()
    expect(await cancelled).toBe('CANCELLED')
    expect(await success()).toBe(1)
    gateOf('cancelled by us').resolve()
    for (let i = 0; i < 5; i++) {
      expect(await codeOf(fresh.call(free, `hangs ${i}`, { timeoutMs: 100 }))).toBe('TIMEOUT')
      gateOf(`hangs ${i}`).resolve()
    }
    expect(await success()).toBeLessThan(0.7)
  })

  it('of one caller do not use up the places of another', async () => {
    const other = await team.start('other')
    await other.manifest('worker')
    const names = ['1', '2', '3', '4']
    const held = names.map((name) => desk.call(free, name))
    // Others may have been started, too: late ones of the test before, whose callers have given them up.
    await until(() => names.every((name) => started.includes(name)))
    gateOf('mine').resolve()
    expect(await other.call(free, 'mine')).toBe('mine')
    for (const name of names) gateOf(name).resolve()
    await Promise.all(held)
  })
})
