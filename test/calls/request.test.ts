import {
  type Answer,
  type AnyEvent,
  type Candidate,
  capability,
  isHermesError,
  type MessageLogLine,
  type Peer,
} from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { until } from '../../packages/peer/test/waiting.ts'
import { createTeam } from './support/team.ts'

const instant = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})

const review = capability('code_review', {
  description: 'Reviews one file.',
  input: z.object({
    source: z.string(),
    limit: z.number().default(10),
    since: instant,
    tag: z.string().transform((text) => text.length),
  }),
  output: z.object({ findings: z.array(z.string()), at: instant, count: z.string().transform(Number) }),
  effects: 'none',
})
const echo = capability('echo', { description: 'Echoes.', input: z.any(), output: z.any(), effects: 'none' })
const where = capability('where', {
  description: 'Who.',
  input: z.null(),
  output: z.string(),
  effects: 'none',
  labels: { language: ['ts', 'go'] },
})
const pythonic = capability('where', {
  description: 'Who.',
  input: z.null(),
  output: z.string(),
  effects: 'none',
  labels: { language: 'py' },
})
const sum = capability('sum', {
  description: 'Adds.',
  input: z.object({ parts: z.array(z.object({ n: z.number() })) }),
  output: z.number(),
  effects: 'none',
})

const team = createTeam()
const seen: { input?: unknown; frozen?: boolean; context?: unknown; caller?: string }[] = []
let desk: Peer
let reviewer: Peer
let snake: Peer
const lines: MessageLogLine[] = []
const reviewerLines: MessageLogLine[] = []

beforeAll(async () => {
  reviewer = await team.start(
    'reviewer',
    (peer) =>
      peer
        .provide(review, async (input, { caller, context }) => {
          seen.push({ input, caller, context, frozen: Object.isFrozen(input) })
          return { findings: [input.source], at: input.since.toISOString(), count: String(input.limit) }
        })
        .provide(echo, (input, context) => {
          seen.push({ input, context: { ...context }, frozen: deepFrozen(input) })
          return input
        })
        .provide(where, () => 'reviewer')
        .provide(sum, ({ parts }) => parts.reduce((total, { n }) => total + n, 0)),
    { messageLog: (line) => reviewerLines.push(line) },
  )
  snake = await team.start('billing/snake', (peer) => peer.provide(pythonic, () => 'billing/snake'))
  desk = await team.start('desk', undefined, { messageLog: (line) => lines.push(line) })
  await Promise.all([desk.manifest('reviewer'), desk.manifest('billing/snake')])
})
afterAll(() => team.stop())

const deepFrozen = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(deepFrozen))

describe('a call typed from one contract', () => {
  it('sends the original value, and each side parses it once', async () => {
    const output = await desk.call(review, { source: 'x', since: '2026-01-02T03:04:05.000Z', tag: 'four' })
    expect(seen.at(-1)).toMatchObject({
      input: { source: 'x', limit: 10, since: new Date('2026-01-02T03:04:05.000Z'), tag: 4 },
      caller: 'desk',
    })
    expect(output).toEqual({ findings: ['x'], at: new Date('2026-01-02T03:04:05.000Z'), count: 10 })
  })

  it('gives the handler a frozen input: nobody changes what was judged', async () => {
    await desk.call(echo, { a: [{ b: 1 }] })
    expect(seen.at(-1)?.frozen).toBe(true)
  })

  it.each([
    ['text of any language', '审查 обзор रिव्यू 🔍 \u202e'],
    ['null', null],
    ['zero', 0],
    ['false', false],
    ['an empty text', ''],
    ['an empty list', []],
    ['nested data', { a: [{ b: [{ c: null }] }], 键: 'значение' }],
    ['a text of 500 KB', '文'.repeat(170_000)],
    ['numbers as they are', [0.1, 1e-7, 5e-324, -1, 2 ** 53 - 1]],
  ])('carries %s there and back', async (_, value) => {
    expect(await desk.call(echo, value)).toEqual(value)
  })

  it('tells everything of the answer', async () => {
    const answer: Answer<typeof echo> = await desk.request(echo, 1)
    expect(answer).toEqual({
      status: 'completed',
      output: 1,
      partialResult: undefined,
      agent: 'reviewer',
      messageId: expect.stringMatching(/^msg_[a-zA-Z0-9]{16}$/),
      correlationId: expect.stringMatching(/^corr_[a-zA-Z0-9]{16}$/),
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      attempts: [],
      tookMs: expect.any(Number),
    })
    expect(answer.tookMs).toBeGreaterThan(0)
  })

  it('tells the handler everything of the call', async () => {
    const answer = await desk.request(echo, 1, { priority: 5, timeoutMs: 30_000, context: { ticket: 'T-1' } })
    expect(seen.at(-1)?.context).toMatchObject({
      caller: 'desk',
      messageId: answer.messageId,
      correlationId: answer.correlationId,
      traceId: answer.traceId,
      priority: 5,
      attempt: 1,
      context: { ticket: 'T-1' },
    })
  })

  it('keeps the correlation that it is given, and makes a new message id and trace each time', async () => {
    const first = await desk.request(echo, 1)
    const second = await desk.request(echo, 1, { correlationId: first.correlationId })
    expect(second.correlationId).toBe(first.correlationId)
    expect(second.messageId).not.toBe(first.messageId)
  })

  it('refuses a wrong input before anything is sent', async () => {
    const before = lines.length
    await expect(desk.call(review, { source: 5 } as never)).rejects.toMatchObject({ code: 'VALIDATION_ERROR' })
    expect(lines.length).toBe(before)
  })

  it('a call that cannot be encoded leaves nothing in flight', async () => {
    await expect(desk.call(echo, { n: 1n })).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' })
    const [candidate] = await desk.find({ capability: 'echo' })
    expect(candidate?.reasons.join()).not.toContain('in flight')
    expect(desk.balance().inFlight).toBe(0)
  })

  it('an answer that the contract does not allow is INVALID_OUTPUT, naming agent and place', async () => {
    const wrong = capability('echo', {
      description: 'Echoes.',
      input: z.any(),
      output: z.object({ n: z.number() }),
      effects: 'none',
    })
    await expect(desk.call(wrong, { n: 'x' })).rejects.toMatchObject({
      code: 'INVALID_OUTPUT',
      message: expect.stringMatching(/reviewer.*echo.*\/n/),
      messageId: expect.stringMatching(/^msg_/),
    })
  })
})

describe('the choice', () => {
  it('explicit: the agent that is named', async () => {
    for (let i = 0; i < 5; i++) expect(await desk.call(where, null, { agent: 'billing/snake' })).toBe('billing/snake')
    expect(await desk.call(where, null, { agent: 'reviewer' })).toBe('reviewer')
  })

  it('by label: equal, or one of a list', async () => {
    for (let i = 0; i < 5; i++) {
      expect(await desk.call(where, null, { where: { language: 'go' } })).toBe('reviewer')
      expect(await desk.call(where, null, { where: { language: 'py' } })).toBe('billing/snake')
    }
  })

  it('of nobody is NO_CANDIDATE that says why each was left out', async () => {
    const error = await desk.call(where, null, { where: { language: 'rust' } }).catch((caught: unknown) => caught)
    if (!isHermesError(error)) throw error
    expect(error.code).toBe('NO_CANDIDATE')
    expect(error.message).toMatch(/reviewer: language is ts, go/)
    expect(error.message).toMatch(/billing\/snake: language is py/)
    expect(error.details.candidates).toHaveLength(2)
  })

  it('of an agent that nobody knows ends within the deadline', async () => {
    await expect(desk.call(where, null, { agent: 'ghost', timeoutMs: 300 })).rejects.toMatchObject({
      code: expect.stringMatching(/NO_CANDIDATE|TIMEOUT/),
    })
  })

  it('is explained by find: best first, those left out at the end', async () => {
    const all: readonly Candidate[] = await desk.find({ capability: 'where', where: { language: 'ts' } })
    expect(all.map(({ agentId, usable }) => [agentId, usable])).toEqual([
      ['reviewer', true],
      ['billing/snake', false],
    ])
    expect(all[0]).toMatchObject({
      status: 'online',
      labels: { language: ['ts', 'go'] },
      load: expect.any(Number),
      measured: expect.any(Number),
    })
    expect(all[0]?.reasons.join('; ')).toMatch(/^load \d+; p50 \d+ ms; 100 % of \d+ calls \(measured here\)/)
    expect(all[1]).toMatchObject({ score: Number.NaN, reasons: ['language is py'] })
  })

  it('of oneself is never made', async () => {
    const [own] = await reviewer.find({ capability: 'where', agent: 'reviewer' })
    expect(own?.usable ?? false).toBe(false)
  })
})

describe('callDynamic', () => {
  it('calls by name, with an output that is unknown', async () => {
    expect(await desk.callDynamic('sum', { parts: [{ n: 1 }, { n: 2 }] })).toBe(3)
  })

  it('refuses, by the provider’s own manifest, what its schema does not take, naming the place', async () => {
    const started = reviewerLines.length
    const error = await desk.callDynamic('sum', { parts: [{ n: 1 }, { n: 'two' }] }).catch((caught: unknown) => caught)
    if (!isHermesError(error)) throw error
    expect(error.code).toBe('NO_CANDIDATE')
    expect(error.message).toMatch(/reviewer: .*\/parts\/1\/n/)
    expect(reviewerLines.length, 'nothing was sent').toBe(started)
  })

  it('takes the options of a call', async () => {
    expect(await desk.callDynamic('where', null, { where: { language: 'py' } })).toBe('billing/snake')
    expect(snake.agentId).toBe('billing/snake')
  })

  it('of a capability that nobody has ends with NO_CANDIDATE, not with a typed call', async () => {
    await expect(desk.callDynamic('code_revew', {}, { timeoutMs: 10_000 })).rejects.toMatchObject({
      code: 'NO_CANDIDATE',
    })
  })
})

describe('what is told of one call', () => {
  async function record(peer: Peer, run: () => Promise<unknown>): Promise<AnyEvent[]> {
    const events: AnyEvent[] = []
    const stop = peer.events.onAny((event) => events.push(event))
    await run()
    stop()
    return events
  }
  const about = (events: readonly AnyEvent[], messageId: string) =>
    events.filter((event) => 'messageId' in event && event.messageId === messageId)

  it('at the caller: started, decided, chosen, sent, attempted, answered, ended — in this order, with the same ids', async () => {
    let answer: Answer<typeof echo> | undefined
    const events = about(
      await record(desk, async () => (answer = await desk.request(echo, 1))),
      answer?.messageId as string,
    )
    expect(events.map(({ type }) => type)).toEqual([
      'call.started',
      'call.decided',
      'call.chosen',
      'envelope.sent',
      'call.attempt',
      'envelope.received',
      'call.ended',
    ])
    for (const event of events)
      expect(event).toMatchObject({
        messageId: answer?.messageId,
        correlationId: answer?.correlationId,
        traceId: answer?.traceId,
      })
    expect(events[2]).toMatchObject({
      agentId: 'reviewer',
      attempt: 1,
      score: expect.any(Number),
      reasons: expect.arrayContaining([expect.stringMatching(/^load/)]),
    })
    expect(events.at(-1)).toMatchObject({ code: 'OK', attempts: 1, agentId: 'reviewer', capability: 'echo' })
    expect(events.every(({ at }) => Math.abs(at - Date.now()) < 60_000)).toBe(true)
  })

  it('at the provider: received, admitted, started, ended, sent', async () => {
    let messageId = ''
    const events = about(
      await record(reviewer, async () => {
        messageId = (await desk.request(echo, 1)).messageId
      }),
      messageId,
    )
    expect(events.map(({ type }) => type)).toEqual([
      'envelope.received',
      'envelope.admitted',
      'handler.started',
      'handler.ended',
      'envelope.sent',
    ])
    expect(events[3]).toMatchObject({ code: 'OK', from: 'desk', capability: 'echo', ms: expect.any(Number) })
  })

  it('in the message log: one line per envelope under exactly the fixed names, and no payload', async () => {
    const before = lines.length
    const there = reviewerLines.length
    const answer = await desk.request(echo, { password: 'canary-5a1b' })
    await until(() => lines.length >= before + 2)
    const own = lines.slice(before).filter(({ message_id }) => message_id === answer.messageId)
    expect(own).toEqual([
      {
        message_id: answer.messageId,
        correlation_id: answer.correlationId,
        trace_id: answer.traceId,
        sender: 'desk',
        receiver: 'reviewer',
        message_type: 'request',
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
      expect.objectContaining({
        sender: 'reviewer',
        receiver: 'desk',
        message_type: 'response',
        message_id: answer.messageId,
      }),
    ])
    expect(Object.keys(own[0] as object)).toEqual([
      'message_id',
      'correlation_id',
      'trace_id',
      'sender',
      'receiver',
      'message_type',
      'timestamp',
    ])
    expect(reviewerLines.slice(there).filter(({ message_id }) => message_id === answer.messageId)).toHaveLength(2)
    expect(JSON.stringify([lines, reviewerLines])).not.toContain('canary')
  })
})
