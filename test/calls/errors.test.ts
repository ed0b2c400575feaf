import { type AnyEvent, capability, type HermesError, isError, isHermesError, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { createTeam, PATIENT } from './support/team.ts'

const instant = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})

const review = capability('code_review', {
  description: 'Reviews.',
  input: z.object({ kind: z.string() }),
  output: z.null(),
  errors: { TOO_LONG: z.object({ max_lines: z.number() }), LATE: z.object({ at: instant, by: z.number().default(1) }) },
  effects: 'none',
})
const odd = capability('odd', { description: 'Odd.', input: z.string(), output: z.any(), effects: 'none' })
const nothing = capability('nothing', { description: 'Nothing.', input: z.null(), output: z.null(), effects: 'none' })

const SECRET = '/home/somebody/.ssh/id_ed25519'
const circular = (): unknown => {
  const value: Record<string, unknown> = {}
  value.self = value
  return value
}

/** What a handler may do wrong; each by its name. */
const WRONGS: Record<string, (signal: AbortSignal) => unknown> = {
  'throw Error': () => {
    throw new Error(`cannot open ${SECRET}`)
  },
  'throw a text': () => {
    throw `cannot open ${SECRET}`
  },
  'throw null': () => {
    throw null
  },
  'throw undefined': () => {
    throw undefined
  },
  'throw a number': () => {
    throw 5
  },
  'throw an object with a getter that throws': () => {
    throw Object.defineProperty({}, 'message', { get: () => JSON.parse('{') })
  },
  'throw a HermesError with a path in it': () => {
    throw Object.assign(new Error(SECRET), { code: 'STORAGE_FAILED' })
  },
  'reject later': async () => {
    await new Promise((resolve) => setImmediate(resolve))
    throw new Error(`cannot open ${SECRET}`)
  },
  'reject with nothing': () => Promise.reject(),
  'return a thenable that throws': () => ({
    // biome-ignore lint/suspicious/noThenProperty: that is what is tried
    then: () => {
      throw new Error(SECRET)
    },
  }),
  BigInt: () => 5n,
  circular,
  Symbol: () => Symbol('x'),
  Date: () => new Date(),
  Map: () => new Map([[1, 2]]),
  Set: () => new Set([1]),
  '1e400': () => Number('1e400'),
  NaN: () => Number.NaN,
  'undefined in a list': () => [undefined],
  'a function': () => () => 1,
  'a class instance': () => new (class Account {})(),
  'a getter that throws': () => Object.defineProperty({}, 'x', { enumerable: true, get: () => JSON.parse('{') }),
}

const team = createTeam({ tuning: PATIENT })
let desk: Peer
let worker: Peer
const events: AnyEvent[] = []
const unhandled: unknown[] = []
const onUnhandled = (reason: unknown) => unhandled.push(reason)

beforeAll(async () => {
  process.on('unhandledRejection', onUnhandled)
  worker = await team.start('worker', (peer) =>
    peer
      .provide(review, ({ kind }, context) => {
        if (kind === 'long') throw context.error('TOO_LONG', { max_lines: 5 })
        if (kind === 'late') throw context.error('LATE', { at: '2026-01-02T03:04:05.000Z' })
        if (kind === 'wrong data') throw context.error('TOO_LONG', { max_lines: 'five' } as never)
        if (kind === 'unsendable data') throw context.error('TOO_LONG', { max_lines: 5n } as never)
        if (kind === 'undeclared') throw context.error('MISSING' as never, {} as never)
        return null
      })
      .provide(odd, (kind, { signal }) => WRONGS[kind]?.(signal))
      .provide(nothing, () => undefined as never),
  )
  worker.events.onAny((event) => events.push(event))
  desk = await team.start('desk')
  await desk.manifest('worker')
})
afterAll(async () => {
  await team.stop()
  process.off('unhandledRejection', onUnhandled)
})

async function failure(run: Promise<unknown>): Promise<HermesError> {
  const error = await run.then(
    () => expect.unreachable(),
    (caught: unknown) => caught,
  )
  if (!isHermesError(error)) throw error
  return error
}

describe('declared errors', () => {
  it('arrive under their name with their data', async () => {
    const error = await failure(desk.call(review, { kind: 'long' }))
    if (!isError(error, review, 'TOO_LONG')) throw error
    expect(error.data).toEqual({ max_lines: 5 })
    expect(error).toMatchObject({ remote: true, retryable: false, messageId: expect.stringMatching(/^msg_/) })
    expect(error.attempts).toMatchObject([{ agentId: 'worker', code: 'TOO_LONG' }])
    expect(isError(error, review, 'LATE')).toBe(false)
  })

  it('have data as the contract’s schema makes it: transforms and defaults work', async () => {
    const error = await failure(desk.call(review, { kind: 'late' }))
    if (!isError(error, review, 'LATE')) throw error
    expect(error.data).toEqual({ at: new Date('2026-01-02T03:04:05.000Z'), by: 1 })
  })

  it('are answers: the agent is not held to have failed', async () => {
    await failure(desk.call(review, { kind: 'long' }))
    const [worker] = await desk.find({ capability: 'code_review' })
    expect(worker?.success).toBe(1)
  })

  it.each(['wrong data', 'unsendable data'])('with %s are a mistake of the handler, told as such', async (kind) => {
    const error = await failure(desk.call(review, { kind }))
    expect(error.code).toMatch(/INVALID_RESULT|INVALID_OUTPUT|HANDLER_ERROR/)
    expect(isError(error, review, 'TOO_LONG')).toBe(false)
  })

  it('that the contract does not declare are HANDLER_ERROR', async () => {
    const error = await failure(desk.call(review, { kind: 'undeclared' }))
    expect(error.code).toBe('HANDLER_ERROR')
    expect(error.declared).toBeUndefined()
  })
})

describe('F-36 exception or unserialisable result inside a handler', () => {
  const thrown = Object.keys(WRONGS).filter((name) => /^(throw|reject|return a thenable)/.test(name))
  const returned = Object.keys(WRONGS).filter((name) => !thrown.includes(name))

  it.each([
    ...thrown.map((name) => [name, 'HANDLER_ERROR'] as const),
    ...returned.map((name) => [name, 'INVALID_RESULT'] as const),
  ])('%s gives exactly one answer, %s, soon, without stack or path', async (kind, code) => {
    const before = events.length
    const since = performance.now()
    const error = await failure(desk.call(odd, kind, { timeoutMs: 20_000 }))
    expect(performance.now() - since).toBeLessThan(5000)
    expect(error.code).toBe(code)
    const told = JSON.stringify([error.message, error.hint, error.details, error.data])
    expect(told).not.toContain(SECRET)
    expect(told).not.toMatch(/\bat .*:\d+:\d+|node_modules|file:\/\/|\.test\.ts/)
    const own = events.slice(before).filter((event) => 'messageId' in event && event.messageId === error.messageId)
    expect(
      own.filter(({ type }) => type === 'envelope.sent'),
      'one answer',
    ).toHaveLength(1)
    expect(own.filter(({ type }) => type === 'handler.ended')).toMatchObject([{ code, traceId: error.traceId }])
  })

  it('the provider’s own log has the cause, under the same trace id', async () => {
    const before = events.length
    const error = await failure(desk.call(odd, 'throw Error'))
    const ended = events.slice(before).find((event) => event.type === 'handler.ended')
    expect(ended).toMatchObject({
      traceId: error.traceId,
      cause: expect.objectContaining({ message: expect.stringContaining(SECRET) }),
    })
  })

  it('undefined is null', async () => {
    expect(await desk.call(odd, 'no such wrong')).toBeNull()
    expect(await desk.call(nothing, null)).toBeNull()
  })

  it('leaves the provider healthy', async () => {
    expect(await desk.call(review, { kind: 'fine' })).toBeNull()
    expect(unhandled).toEqual([])
    expect(worker.balance().inFlight).toBe(0)
  })
})
