import { capability, HermesError } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'

type Effects = 'none' | 'once'
const contractOf = (effects: Effects, maxConcurrency?: number) =>
  capability('work', {
    description: 'Takes as long as it is told, ms.',
    input: z.number(),
    output: z.string(),
    effects,
    ...(maxConcurrency === undefined ? {} : { constraints: { maxConcurrency } }),
  })
const helper = capability('helper', {
  description: 'Is called by the work.',
  input: z.null(),
  output: z.string(),
  effects: 'none',
})

const counting = capability('counting', {
  description: 'Counts to two, and takes its time, ms, in between.',
  input: z.number(),
  yields: z.number(),
  output: z.string(),
  effects: 'none',
})
const large = capability('large', {
  description: 'Answers after its time, ms, with more than fits in an envelope.',
  input: z.number(),
  output: z.string(),
  effects: 'none',
})

/** Providers of one capability and a caller that knows them. */
async function scene(net: TestNetwork, names: readonly string[], work: ReturnType<typeof contractOf>) {
  const started: string[] = []
  const aborted: unknown[] = []
  const providers: Record<string, Peer> = {}
  for (const name of names) {
    const peer = await net.peer(name)
    peer.provide(work, async (ms, ctx) => {
      started.push(name)
      ctx.signal.addEventListener('abort', () => aborted.push(HermesError.from(ctx.signal.reason).code))
      await net.sleep(ms, { signal: ctx.signal })
      return name
    })
    providers[name] = peer
  }
  const caller = await net.peer('caller')
  await usable(net, caller, 'work', names.length)
  return { started, aborted, providers: providers as Record<'a' | 'b', Peer>, caller }
}

async function usable(net: TestNetwork, caller: Peer, name: string, count: number): Promise<void> {
  for (;;) {
    const found = await net.until(caller.find({ capability: name }))
    if (found.filter((one) => one.usable).length >= count) return
    await net.advance('100ms')
  }
}

const codeOf = (run: Promise<unknown>) =>
  run.then(
    (value) => value,
    (error: unknown) => HermesError.from(error).code,
  )

describe('F-44 stop signal cuts work in flight', () => {
  it('what runs ends and is answered; the stop waits for it, and no longer', async () => {
    await using net = testNetwork({ seed: 44 })
    const work = contractOf('once')
    const { started, aborted, providers, caller } = await scene(net, ['a'], work)
    const calls = [1000, 3000, 5000].map((ms) => caller.request(work, ms))
    await net.timeline.runUntil(() => started.length === 3)
    const since = net.timeline.now()
    const stopped = providers.a.stop().then(() => net.timeline.now() - since)
    const answers = await net.until(Promise.all(calls))
    expect(answers.map(({ output, attempts }) => [output, attempts.length])).toEqual([
      ['a', 0],
      ['a', 0],
      ['a', 0],
    ])
    const took = await net.until(stopped)
    expect(took).toBeGreaterThanOrEqual(4900)
    expect(took).toBeLessThan(5500)
    expect(aborted).toEqual([])
  })

  it('a stream that ends meanwhile, and an answer in chunks, are taken whole by their readers', async () => {
    await using net = testNetwork({ seed: 53 })
    const a = await net.peer('a')
    a.provide(counting, async function* (ms) {
      yield 1
      await net.sleep(ms)
      yield 2
      return 'ended'
    })
    a.provide(large, async (ms) => {
      await net.sleep(ms)
      return '検'.repeat(1_000_000)
    })
    const caller = await net.peer('caller')
    await usable(net, caller, counting.name, 1)
    await usable(net, caller, large.name, 1)
    const stream = caller.stream(counting, 2000)
    const read = async () => {
      const pieces: number[] = []
      for await (const piece of stream) pieces.push(piece)
      return [...pieces, await stream.result]
    }
    const reading = read()
    const answer = caller.call(large, 2000)
    await net.advance('1s')
    const since = net.timeline.now()
    const stopped = a.stop()
    expect(await net.until(reading)).toEqual([1, 2, 'ended'])
    expect((await net.until(answer)).length).toBe(1_000_000)
    await net.until(stopped)
    expect(net.timeline.now() - since).toBeLessThan(3000)
  })

  it('with nothing in flight it takes no time', async () => {
    await using net = testNetwork({ seed: 45 })
    const { providers } = await scene(net, ['a'], contractOf('none'))
    const since = net.timeline.now()
    await net.until(providers.a.stop())
    expect(net.timeline.now() - since).toBeLessThan(100)
  })

  it('new work is refused as draining and goes elsewhere without an error, also with effects once', async () => {
    await using net = testNetwork({ seed: 46 })
    const work = contractOf('once')
    const { started, providers, caller } = await scene(net, ['a', 'b'], work)
    const running = caller.request(work, 5000, { agent: 'a' })
    await net.timeline.runUntil(() => started.length === 1)
    const stopped = providers.a.stop()
    // Sent before the caller can have heard of it.
    const direct = codeOf(caller.request(work, 1, { agent: 'a', timeoutMs: 500 }))
    const elsewhere = Array.from({ length: 20 }, () => caller.request(work, 1))
    const answers = await net.until(Promise.all(elsewhere))
    expect(new Set(answers.map(({ agent }) => agent))).toEqual(new Set(['b']))
    expect(answers.flatMap(({ attempts }) => attempts).every(({ code }) => code === 'DRAINING')).toBe(true)
    expect(await net.until(direct)).toBe('DRAINING')
    // By now it has told: it is no candidate while it drains.
    const [candidate] = await net.until(caller.find({ capability: 'work', agent: 'a' }))
    expect(candidate).toMatchObject({ usable: false, status: 'draining', reasons: ['about to stop'] })
    expect((await net.until(running)).output).toBe('a')
    await net.until(stopped)
  })

  it('what waits is handed back at once, not started here, and done elsewhere', async () => {
    await using net = testNetwork({ seed: 47 })
    const work = contractOf('once', 1)
    const { started, providers, caller } = await scene(net, ['a', 'b'], work)
    const other = await net.peer('other')
    await usable(net, other, 'work', 2)
    const running = other.request(work, 4000, { agent: 'a' })
    await net.timeline.runUntil(() => started.length === 1)
    const queued = [1, 2, 3].map(() => caller.request(work, 1, { agent: 'a', timeoutMs: 2000 }))
    const free = codeOf(queued[0] as Promise<unknown>)
    for (const one of queued) one.catch(() => undefined)
    const draining: { handedBack: number }[] = []
    providers.a.events.on('peer.draining', (event) => draining.push(event))
    await net.advance('50ms')
    const since = net.timeline.now()
    const stopped = providers.a.stop()
    expect(await net.until(free)).toBe('DRAINING')
    expect(net.timeline.now() - since).toBeLessThan(2000)
    expect(draining).toMatchObject([{ handedBack: 3, running: 1 }])
    await net.until(Promise.allSettled(queued))
    expect(started).toEqual(['a'])
    const again = await net.until(caller.request(work, 1))
    expect(again.agent).toBe('b')
    expect((await net.until(running)).output).toBe('a')
    await net.until(stopped)
  })

  it('what still runs at the end of its time is aborted, told so, and the stop ends', async () => {
    await using net = testNetwork({ seed: 48 })
    const work = contractOf('once')
    const { started, aborted, providers, caller } = await scene(net, ['a'], work)
    const call = codeOf(caller.request(work, 50_000))
    await net.timeline.runUntil(() => started.length === 1)
    const since = net.timeline.now()
    const ended: number[] = []
    providers.a.events.on('peer.stopped', (event) => ended.push(event.aborted))
    await net.until(providers.a.stop({ drainMs: 2000 }))
    const took = net.timeline.now() - since
    expect(took).toBeGreaterThanOrEqual(2000)
    expect(took).toBeLessThan(2500)
    expect(aborted).toEqual(['CALLER_GONE'])
    expect(ended).toEqual([1])
    expect(await net.until(call)).toBe('CALLER_GONE')
  })

  it('a handler that ignores its signal does not keep it', async () => {
    await using net = testNetwork({ seed: 49 })
    const deaf = capability('deaf', {
      description: 'Never ends.',
      input: z.null(),
      output: z.null(),
      effects: 'none',
    })
    const provider = await net.peer('a')
    let started = false
    provider.provide(deaf, () => {
      started = true
      return new Promise<never>(() => undefined)
    })
    const caller = await net.peer('caller')
    await usable(net, caller, 'deaf', 1)
    const call = codeOf(caller.call(deaf, null, { timeoutMs: 50_000 }))
    await net.timeline.runUntil(() => started)
    const since = net.timeline.now()
    await net.until(provider.stop({ drainMs: 1000 }))
    expect(net.timeline.now() - since).toBeLessThanOrEqual(1400)
    expect(await net.until(call)).not.toBe('INTERNAL')
  })

  it('a second stop ends it at once', async () => {
    await using net = testNetwork({ seed: 50 })
    const work = contractOf('none')
    const { started, aborted, providers, caller } = await scene(net, ['a'], work)
    const call = codeOf(caller.request(work, 50_000, { timeoutMs: 3000 }))
    await net.timeline.runUntil(() => started.length === 1)
    const since = net.timeline.now()
    const first = providers.a.stop()
    await net.advance('1s')
    expect(aborted).toEqual([])
    await net.until(Promise.all([first, providers.a.stop()]))
    expect(net.timeline.now() - since).toBeLessThan(1400)
    expect(aborted).toEqual(['CALLER_GONE'])
    await net.until(call)
  })

  it('a handler that is let end may call others meanwhile; whoever stopped it may not', async () => {
    await using net = testNetwork({ seed: 51 })
    const assistant = await net.peer('assistant')
    assistant.provide(helper, async () => {
      await net.sleep('500ms')
      return 'helped'
    })
    const outer = capability('outer', {
      description: 'Calls the helper, late and twice.',
      input: z.null(),
      output: z.string(),
      effects: 'once',
    })
    const provider = await net.peer('a')
    let started = false
    provider.provide(outer, async () => {
      started = true
      const first = await provider.call(helper, null)
      await net.sleep('1s')
      return `${first} ${await provider.call(helper, null)}`
    })
    const caller = await net.peer('caller')
    await usable(net, caller, 'outer', 1)
    await usable(net, provider, 'helper', 1)
    const call = caller.call(outer, null)
    await net.timeline.runUntil(() => started)
    const own = codeOf(provider.call(helper, null))
    const stopped = provider.stop()
    expect(await net.until(own)).toBe('STOPPED')
    expect(await codeOf(provider.call(helper, null))).toBe('STOPPED')
    expect(await net.until(call)).toBe('helped helped')
    await net.until(stopped)
  })

  it('does not wait for work whose caller has cancelled or is gone', async () => {
    await using net = testNetwork({ seed: 52 })
    const work = contractOf('none')
    const { started, providers, caller } = await scene(net, ['a'], work)
    const stop = new AbortController()
    const calls = [
      codeOf(caller.request(work, 50_000, { signal: stop.signal })),
      codeOf(caller.request(work, 50_000, { signal: stop.signal })),
    ]
    await net.timeline.runUntil(() => started.length === 2)
    const since = net.timeline.now()
    const stopped = providers.a.stop()
    await net.advance('1s')
    stop.abort()
    await net.until(stopped)
    expect(net.timeline.now() - since).toBeLessThan(2000)
    expect(await net.until(Promise.all(calls))).toEqual(['CANCELLED', 'CANCELLED'])
  })

  it.each([-1, Number.NaN, 1e12, '5s'])('a time to drain of %j is refused', async (drainMs) => {
    await using net = testNetwork({ seed: 53 })
    const peer = await net.peer('a')
    expect(() => peer.stop({ drainMs: drainMs as number })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', details: { field: 'drainMs' } }),
    )
  })
})
