import {
  type Answer,
  type CallContext,
  type CallOptions,
  type Candidate,
  capability,
  createPeer,
  type HandedOn,
  type Handler,
  type HermesError,
  isError,
  isHermesError,
  type Manifest,
  type NeedConfirmation,
  type Peer,
  type PeerOptions,
  type ReceivedEvent,
  type ResultStream,
  type StreamHandler,
} from 'hermes-peer'
import { describe, expect, expectTypeOf, it } from 'vitest'
import * as z from 'zod'

const instant = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (date) => date.toISOString(),
})

/** One contract, imported by both sides. */
const review = capability('code_review', {
  description: 'Reviews one TypeScript file.',
  input: z.object({ source: z.string(), limit: z.number().default(10), since: instant }),
  output: z.object({ findings: z.array(z.string()), at: instant }),
  partial: z.object({ plan: z.string(), due: instant }),
  errors: { TOO_LONG: z.object({ max_bytes: z.number() }), LATE: z.object({ at: instant }) },
  effects: 'none',
})
const plain = capability('plain', { description: 'Plain.', input: z.string(), output: z.null() })

const draft = capability('draft', {
  description: 'Drafts.',
  input: z.object({ question: z.string(), limit: z.number().default(10) }),
  output: z.object({ tokens: z.number(), at: instant }),
  yields: z.object({ text: z.string(), at: instant }),
})

/** Only compiled: what stands in it is checked by the type checker, and nothing is called. */
const compiled = (_check: (peer: Peer) => unknown): void => expect(_check).toBeTypeOf('function')

describe('the caller’s side of a contract', () => {
  it('gives what travels and gets what its schema makes of it', () =>
    compiled((peer) => {
      expectTypeOf(peer.call(review, { source: 'x', since: '2026-01-01T00:00:00Z' })).toEqualTypeOf<
        Promise<{ findings: string[]; at: Date }>
      >()
      expectTypeOf(peer.call(plain, 'x')).toEqualTypeOf<Promise<null>>()
      expectTypeOf(peer.call<typeof review>)
        .parameter(1)
        .toEqualTypeOf<{ source: string; limit?: number | undefined; since: string }>()
    }))

  it('refuses another input', () =>
    compiled((peer) => {
      // @ts-expect-error since is missing
      void peer.call(review, { source: 'x' })
      // @ts-expect-error the text that travels is wanted, not what it becomes
      void peer.call(review, { source: 'x', since: new Date() })
      // @ts-expect-error an unknown field
      void peer.call(review, { source: 'x', since: '', sourec: 'y' })
      // @ts-expect-error no input
      void peer.call(plain)
      // @ts-expect-error a name is no contract: that is callDynamic
      void peer.call('code_review', { source: 'x' })
    }))

  it('knows everything of an answer', () =>
    compiled(async (peer) => {
      const answer = await peer.request(review, { source: 'x', since: '' })
      expectTypeOf(answer).toEqualTypeOf<Answer<typeof review>>()
      expectTypeOf(answer.status).toEqualTypeOf<'completed' | 'need_confirmation'>()
      expectTypeOf(answer.output).toEqualTypeOf<{ findings: string[]; at: Date } | undefined>()
      expectTypeOf(answer.partialResult).toEqualTypeOf<{ plan: string; due: Date } | undefined>()
      expectTypeOf(answer.agent).toEqualTypeOf<string>()
      expectTypeOf(answer.attempts[0]).toEqualTypeOf<HermesError['attempts'][number] | undefined>()
      // @ts-expect-error the output may be absent: a plan may have come instead
      answer.output.findings
      // @ts-expect-error nobody changes an answer
      answer.status = 'completed'
    }))

  it('has an unknown partial result where the contract has none', () =>
    compiled(async (peer) => {
      expectTypeOf((await peer.request(plain, 'x')).partialResult).toEqualTypeOf<unknown>()
    }))

  it('takes the options there are, and no others', () =>
    compiled((peer) => {
      const signal = new AbortController().signal
      void peer.call(plain, 'x', {
        agent: 'a',
        where: { language: 'ts' },
        timeoutMs: 5,
        priority: 5,
        signal,
        ordered: false,
        context: { a: 1 },
      })
      // @ts-expect-error misspelt
      void peer.call(plain, 'x', { timeout: 5 })
      // @ts-expect-error there is no priority 9
      void peer.call(plain, 'x', { priority: 9 })
      // @ts-expect-error labels are texts
      void peer.call(plain, 'x', { where: { version: 5 } })
      // @ts-expect-error a controller is no signal
      void peer.call(plain, 'x', { signal: new AbortController() })
      expectTypeOf<CallOptions['priority']>().toEqualTypeOf<1 | 2 | 3 | 4 | 5 | undefined>()
    }))

  it('by name alone gets unknown: a typo never passes for a typed call', () =>
    compiled(async (peer) => {
      const output = await peer.callDynamic('code_review', { source: 'x' })
      expectTypeOf(output).toEqualTypeOf<unknown>()
      // @ts-expect-error unknown until it has been looked at
      output.findings
    }))

  it('tells declared errors apart, with their data', () => {
    const caught: unknown = new Error('x')
    if (isError(caught, review, 'TOO_LONG')) expectTypeOf(caught.data).toEqualTypeOf<{ max_bytes: number }>()
    if (isError(caught, review, 'LATE')) {
      expectTypeOf(caught.data).toEqualTypeOf<{ at: Date }>()
      expectTypeOf(caught).toExtend<HermesError>()
    }
    // @ts-expect-error not declared
    expect(isError(caught, review, 'MISSING')).toBe(false)
    // @ts-expect-error this contract declares none
    expect(isError(caught, plain, 'TOO_LONG')).toBe(false)
    if (isHermesError(caught)) {
      expectTypeOf(caught.code).toExtend<string>()
      // @ts-expect-error not a code of the table
      expect(caught.code === 'TIME_OUT').toBe(false)
    }
  })
})

describe('the provider’s side of the same contract', () => {
  it('gets what the schema made of the input and gives what travels', () =>
    compiled((peer) =>
      peer.provide(review, async (input, context) => {
        expectTypeOf(input).toEqualTypeOf<{ source: string; limit: number; since: Date }>()
        expectTypeOf(context).toEqualTypeOf<CallContext<typeof review>>()
        return { findings: [input.source], at: new Date().toISOString() }
      }),
    ))

  it('may answer at once or later', () =>
    compiled((peer) => {
      peer.provide(plain, () => null)
      expectTypeOf<ReturnType<Handler<typeof plain>>>().toEqualTypeOf<
        null | NeedConfirmation | HandedOn | Promise<null | NeedConfirmation | HandedOn>
      >()
      return peer.provide(plain, async () => null)
    }))

  it('may hand the call on, to an agent or to any that provides the contract', () =>
    compiled((peer) => {
      peer.provide(plain, (_, ctx) => ctx.forward('agent-b'))
      peer.provide(plain, async (_, ctx) => ctx.forward(plain, { where: { language: 'ts' }, timeoutMs: 1000 }))
      // @ts-expect-error what it resolves with is no output
      peer.provide(plain, async (_, ctx) => (await ctx.forward('agent-b')).output)
      expectTypeOf<CallContext['via']>().toEqualTypeOf<readonly string[]>()
    }))

  it('refuses another result', () =>
    compiled((peer) => {
      // @ts-expect-error findings are texts
      peer.provide(review, async () => ({ findings: [1], at: '' }))
      // @ts-expect-error the text that travels is wanted, not a Date
      peer.provide(review, async () => ({ findings: [], at: new Date() }))
      // @ts-expect-error nothing is not null
      peer.provide(plain, async () => undefined)
      // @ts-expect-error a handler is a function
      peer.provide(plain, null)
    }))

  it('may throw what the contract declares, with its data', () =>
    compiled((peer) =>
      peer.provide(review, async (_, context) => {
        expectTypeOf(context.error('TOO_LONG', { max_bytes: 5 })).toEqualTypeOf<Error>()
        context.error('LATE', { at: new Date().toISOString() })
        // @ts-expect-error not declared
        context.error('MISSING', {})
        // @ts-expect-error other data
        context.error('TOO_LONG', { at: '' })
        // @ts-expect-error the text that travels is wanted, not a Date
        throw context.error('LATE', { at: new Date() })
      }),
    ))

  it('may answer with a plan, as the contract types it', () =>
    compiled((peer) =>
      peer.provide(review, (_, context) => {
        // @ts-expect-error the plan has no due time
        context.needConfirmation({ plan: 'x' })
        // @ts-expect-error only what needConfirmation gives is a confirmation
        const _made: NeedConfirmation = { plan: 'x' }
        return context.needConfirmation({ plan: 'x', due: new Date().toISOString() })
      }),
    ))

  it('is told of the call it serves', () => {
    expectTypeOf<CallContext>().toHaveProperty('signal').toEqualTypeOf<AbortSignal>()
    expectTypeOf<CallContext>().toHaveProperty('caller').toEqualTypeOf<string>()
    expectTypeOf<CallContext>().toHaveProperty('remainingMs').toEqualTypeOf<() => number>()
    expectTypeOf<CallContext>().toHaveProperty('context').toEqualTypeOf<Readonly<Record<string, unknown>>>()
    // @ts-expect-error nobody changes it
    const change = (context: CallContext) => (context.caller = 'x')
    expect(change).toBeTypeOf('function')
  })
})

describe('the peer', () => {
  it('is chained: provide gives the same peer, start a promise of it', () =>
    compiled((peer) => {
      expectTypeOf(
        peer.provide(plain, () => null).provide(review, () => ({ findings: [], at: '' })),
      ).toEqualTypeOf<Peer>()
      expectTypeOf(peer.start()).toEqualTypeOf<Promise<Peer>>()
    }))

  it('needs an agent id, and knows its options', () => {
    // @ts-expect-error agentId is missing
    const missing: PeerOptions = {}
    // @ts-expect-error there is no such preset
    const preset: PeerOptions = { agentId: 'a', preset: 'production' }
    // @ts-expect-error misspelt
    const misspelt: PeerOptions = { agentId: 'a', bootstraps: [] }
    // @ts-expect-error not a default that can be set
    const tuning: PeerOptions = { agentId: 'a', tuning: { silence: 5 } }
    expectTypeOf(createPeer).parameters.toEqualTypeOf<[options: PeerOptions]>()
    expect([missing, preset, misspelt, tuning]).toHaveLength(4)
  })

  it('can be disposed of by `await using`', () => {
    expectTypeOf<Peer>().toExtend<AsyncDisposable>()
  })

  it('emits to an agent or to a topic, and says to how many', () =>
    compiled(async (peer) => {
      expectTypeOf(await peer.emit({ topic: 'news' }, { any: 'data' })).toEqualTypeOf<{
        peers: number
        stored?: boolean
      }>()
      void peer.emit({ agent: 'a', event: 'done' }, null)
      // @ts-expect-error which event?
      void peer.emit({ agent: 'a' }, null)
      expectTypeOf(peer.onTopic('news', () => {})).toEqualTypeOf<() => void>()
      peer.onEvent('done', (event) => {
        expectTypeOf(event).toEqualTypeOf<ReceivedEvent>()
        expectTypeOf(event.data).toEqualTypeOf<unknown>()
      })
    }))

  it('finds, watches and describes', () =>
    compiled(async (peer) => {
      expectTypeOf(await peer.find({ capability: 'x' })).toEqualTypeOf<readonly Candidate[]>()
      expectTypeOf(await peer.manifest('a')).toEqualTypeOf<Manifest>()
      peer.watch({ agent: 'a' }, ({ type }) => {
        expectTypeOf(type).toEqualTypeOf<'joined' | 'changed' | 'suspect' | 'offline' | 'left'>()
      })
    }))

  it('names its events and types each of them', () =>
    compiled((peer) => {
      peer.events.on('call.failover', (event) => {
        expectTypeOf(event.from).toEqualTypeOf<string>()
        expectTypeOf(event.type).toEqualTypeOf<'call.failover'>()
        expectTypeOf(event.at).toEqualTypeOf<number>()
        // @ts-expect-error that is another event's
        event.linkId
      })
      peer.events.onAny((event) => {
        if (event.type === 'link.up') expectTypeOf(event.direction).toEqualTypeOf<'inbound' | 'outbound'>()
      })
      // @ts-expect-error there is no such event
      peer.events.on('call.finished', () => {})
    }))
})

describe('streams', () => {
  it('give pieces and a result as their schemas make them', () =>
    compiled(async (peer) => {
      const answer = peer.stream(draft, { question: 'x' })
      expectTypeOf(answer).toEqualTypeOf<ResultStream<typeof draft>>()
      for await (const piece of answer) expectTypeOf(piece).toEqualTypeOf<{ text: string; at: Date }>()
      expectTypeOf(await answer.result).toEqualTypeOf<{ tokens: number; at: Date }>()
      expectTypeOf(answer.messageId).toEqualTypeOf<string>()
      answer.cancel('enough')
      // @ts-expect-error the contract has no yields
      peer.stream(plain, 'x')
      // @ts-expect-error question is missing
      peer.stream(draft, {})
      // @ts-expect-error misspelt
      peer.stream(draft, { question: 'x' }, { timeout: 5 })
    }))

  it('are served by an async generator of what travels, and by nothing else', () =>
    compiled((peer) => {
      expectTypeOf<Handler<typeof draft>>().toEqualTypeOf<StreamHandler<typeof draft>>()
      peer.provide(draft, async function* ({ question, limit }, { signal }) {
        expectTypeOf(question).toEqualTypeOf<string>()
        expectTypeOf(limit).toEqualTypeOf<number>()
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
        yield { text: question, at: '2026-01-01T00:00:00Z' }
        return { tokens: 1, at: '2026-01-01T00:00:00Z' }
      })
      // @ts-expect-error no generator
      peer.provide(draft, async () => ({ tokens: 1, at: '' }))
      // @ts-expect-error a piece of another form
      peer.provide(draft, async function* () {
        yield { text: 5, at: '' }
        return { tokens: 1, at: '' }
      })
      // @ts-expect-error no result
      peer.provide(draft, async function* () {
        yield { text: 'x', at: '' }
      })
      // @ts-expect-error the contract has no yields
      peer.provide(plain, async function* () {
        yield 1
        return null
      })
    }))
})
