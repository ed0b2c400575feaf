import EventEmitter from 'node:events'
import { type AnyEvent, capability, isHermesError, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { deferred, until } from '../../packages/peer/test/waiting.ts'
import { createTeam } from './support/team.ts'

const slow = capability('slow', {
  description: 'Waits for its signal.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
})
const careful = capability('careful', { description: 'Waits, once.', input: z.string(), output: z.string() })
const relay = capability('relay', {
  description: 'Has it done by others.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
})
const single = capability('single', {
  description: 'One at a time.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
  constraints: { maxConcurrency: 1 },
})
const deaf = capability('deaf', {
  description: 'Does not listen to its signal.',
  input: z.string(),
  output: z.string(),
  effects: 'none',
})

const team = createTeam()
const log: { who: string; input: string; aborted?: string | undefined; remainingMs?: number }[] = []
let gate = deferred()
let desk: Peer
let helper: Peer
let worker: Peer

/** A handler that ends when its signal fires, and notes why. */
const waits =
  (who: string) =>
  (input: string, { signal, remainingMs }: { signal: AbortSignal; remainingMs(): number }): Promise<string> =>
    new Promise((resolve, reject) => {
      const entry: (typeof log)[number] = { who, input, remainingMs: remainingMs() }
      log.push(entry)
      const stop = () => {
        entry.aborted = (signal.reason as { code?: string }).code ?? 'no code'
        reject(signal.reason)
      }
      if (signal.aborted) stop()
      signal.addEventListener('abort', stop, { once: true })
      void gate.promise.then(() => resolve('done'))
    })
const started = (input: string) => log.filter((entry) => entry.input === input)
const aborts = (input: string) => started(input).map(({ who, aborted }) => [who, aborted])

beforeAll(async () => {
  worker = await team.start('worker', (peer) =>
    peer
      .provide(slow, waits('worker'))
      .provide(careful, waits('worker'))
      .provide(single, waits('worker'))
      .provide(deaf, async () => {
        await gate.promise
        return 'done'
      }),
  )
  helper = await team.start('helper', (peer) =>
    peer.provide(relay, async (input, { signal }) => {
      log.push({ who: 'helper', input })
      const entry = log.at(-1) as (typeof log)[number]
      signal.addEventListener('abort', () => {
        entry.aborted = (signal.reason as { code?: string }).code
      })
      return helper.call(slow, input)
    }),
  )
  desk = await team.start('desk')
  await Promise.all([desk.manifest('worker'), desk.manifest('helper'), helper.manifest('worker')])
})
afterAll(() => team.stop())
beforeEach(() => {
  gate.resolve()
  gate = deferred()
})

const codeOf = (run: Promise<unknown>): Promise<string> =>
  run.then(
    () => 'OK',
    (error: unknown) => {
      if (!isHermesError(error)) throw error
      return error.code
    },
  )

describe('F-18 handler keeps running after the caller is gone', () => {
  it('(a) the caller cancels: its call ends at once, the handler’s signal fires within 1 s', async () => {
    const stop = new AbortController()
    const call = codeOf(desk.call(slow, 'a', { signal: stop.signal }))
    await until(() => started('a').length === 1)
    const since = performance.now()
    stop.abort()
    expect(await call).toBe('CANCELLED')
    await until(() => started('a')[0]?.aborted !== undefined, 'the abort', 10_000)
    expect(performance.now() - since).toBeLessThan(1000)
    expect(aborts('a')).toEqual([['worker', 'CANCELLED']])
  })

  it('(a) the reason of the caller’s signal is the cause of the error', async () => {
    const stop = new AbortController()
    const call = desk.call(slow, 'reason', { signal: stop.signal }).catch((error: unknown) => error)
    await until(() => started('reason').length === 1)
    stop.abort(new Error('the user pressed Escape'))
    const error = await call
    if (!isHermesError(error)) throw error
    expect(error.code).toBe('CANCELLED')
    expect((error.cause as Error).message).toBe('the user pressed Escape')
  })

  it('(a) nested calls are cancelled too', async () => {
    const stop = new AbortController()
    const call = codeOf(desk.call(relay, 'nested', { signal: stop.signal }))
    await until(() => started('nested').length === 2)
    stop.abort()
    expect(await call).toBe('CANCELLED')
    await until(() => started('nested').every(({ aborted }) => aborted !== undefined), 'both aborts', 10_000)
    expect(aborts('nested')).toEqual([
      ['helper', 'CANCELLED'],
      ['worker', 'CANCELLED'],
    ])
    expect(helper.balance().inFlight).toBe(0)
  })

  it('(b) the caller stops: what it had running is aborted', async () => {
    const guest = await team.start('guest')
    const call = codeOf(guest.call(slow, 'b'))
    await until(() => started('b').length === 1)
    await guest.stop()
    expect(await call).toBe('STOPPED')
    await until(() => started('b')[0]?.aborted !== undefined, 'the abort', 4000)
  })

  it('(c) the deadline passes: the handler is aborted, and whatever it had called', async () => {
    const since = performance.now()
    expect(await codeOf(desk.call(relay, 'c', { timeoutMs: 3000 }))).toBe('TIMEOUT')
    expect(performance.now() - since).toBeLessThan(3000 + 250 + LATE)
    await until(
      () => started('c').length === 2 && started('c').every(({ aborted }) => aborted !== undefined),
      'the aborts',
      10_000,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(log.filter(({ input }) => input === 'c'))}`)
    })
    for (const { remainingMs } of started('c').slice(1)) expect(remainingMs).toBeLessThanOrEqual(3000)
  })

  it('(e) a cancel before the handler starts: it never runs', async () => {
    const first = desk.call(single, 'e1')
    await until(() => started('e1').length === 1)
    const stop = new AbortController()
    const at: string[] = []
    const offs = [
      worker.events.on('handler.queued', () => at.push('queued')),
      worker.events.on('handler.cancelled', () => at.push('cancelled')),
    ]
    const second = codeOf(desk.call(single, 'e2', { signal: stop.signal }))
    await until(() => at.includes('queued'))
    stop.abort()
    expect(await second).toBe('CANCELLED')
    await until(() => at.includes('cancelled'))
    for (const off of offs) off()
    const third = desk.call(single, 'e3')
    gate.resolve()
    await Promise.all([first, third])
    expect(started('e2')).toEqual([])
  })

  it('(e) a signal that has fired before the call: nothing is sent', async () => {
    const events: AnyEvent[] = []
    const off = desk.events.onAny((event) => events.push(event))
    expect(await codeOf(desk.call(slow, 'never', { signal: AbortSignal.abort() }))).toBe('CANCELLED')
    off()
    expect(events.map(({ type }) => type)).toEqual(['call.started', 'call.ended'])
    expect(started('never')).toEqual([])
  })

  it('(e) a signal that fires in the same turn as the call: nothing runs', async () => {
    const stop = new AbortController()
    const call = codeOf(desk.call(slow, 'same turn', { signal: stop.signal }))
    stop.abort()
    expect(await call).toBe('CANCELLED')
    gate.resolve()
    // A later call on the same link is answered after whatever was sent before it.
    await desk.call(slow, 'after')
    expect(started('same turn').every(({ aborted }) => aborted !== undefined)).toBe(true)
  })

  it('a signal keeps no listener of ended calls', async () => {
    const stop = new AbortController()
    gate.resolve()
    for (let i = 0; i < 20; i++) await desk.call(slow, 'many', { signal: stop.signal })
    expect(EventEmitter.getEventListeners(stop.signal, 'abort')).toEqual([])
  })
})

/** What a busy machine may add before a timer runs. */
const LATE = 500

describe('deadlines', () => {
  it.each([50, 300, 900])('a call of %d ms ends by its deadline + 250 ms', async (timeoutMs) => {
    const since = performance.now()
    expect(await codeOf(desk.call(slow, `deadline ${timeoutMs}`, { timeoutMs }))).toBe('TIMEOUT')
    const took = performance.now() - since
    expect(took).toBeGreaterThanOrEqual(timeoutMs - 2)
    expect(took).toBeLessThan(timeoutMs + 250 + LATE)
  })

  it('effects none that were not answered are TIMEOUT; effects once are OUTCOME_UNKNOWN with the id', async () => {
    expect(await codeOf(desk.call(slow, 'none', { timeoutMs: 200 }))).toBe('TIMEOUT')
    const error = await desk.call(careful, 'once', { timeoutMs: 200 }).catch((caught: unknown) => caught)
    if (!isHermesError(error)) throw error
    expect(error.code).toBe('OUTCOME_UNKNOWN')
    expect(error.messageId).toMatch(/^msg_/)
    expect((error.cause as { code?: string }).code).toBe('TIMEOUT')
  })

  it('effects once that were never sent are TIMEOUT or NO_CANDIDATE: nothing can have been done', async () => {
    const absent = capability('absent', { description: 'Nobody has it.', input: z.null(), output: z.null() })
    expect(await codeOf(desk.call(absent, null, { timeoutMs: 200 }))).toMatch(/^(TIMEOUT|NO_CANDIDATE)$/)
  })

  it('a handler that does not listen keeps its place, but nobody waits for it', async () => {
    const since = performance.now()
    expect(await codeOf(desk.call(deaf, 'deaf', { timeoutMs: 200 }))).toBe('TIMEOUT')
    expect(performance.now() - since).toBeLessThan(200 + 250 + LATE)
    expect(desk.balance().inFlight).toBe(0)
  })

  it('find ends by its time, also when nobody answers', async () => {
    const since = performance.now()
    await desk.find({ capability: 'unheard-of' }, { timeoutMs: 200 }).catch(() => undefined)
    expect(performance.now() - since).toBeLessThan(200 + 250 + LATE)
  })

  it('find, manifest and connect end by the caller’s signal', async () => {
    const signal = AbortSignal.abort()
    expect(await codeOf(desk.find({ capability: 'unheard-of' }, { signal }))).toBe('CANCELLED')
    expect(await codeOf(desk.manifest('ghost', { signal }))).toMatch(/CANCELLED|PEER_UNREACHABLE/)
    expect(await codeOf(desk.connect('/ip4/127.0.0.1/tcp/1', { signal }))).toMatch(/CANCELLED|PEER_UNREACHABLE/)
  })
})
