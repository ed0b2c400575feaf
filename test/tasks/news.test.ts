import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { type CallContext, capability, HermesError, type Peer } from 'hermes-peer'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'

/** Gives whatever it is asked for. */
const anything = capability('anything', {
  description: 'Gives and tells any data.',
  input: z.object({ kind: z.string() }),
  output: z.any(),
  partial: z.any(),
  asks: { question: z.any(), answer: z.any() },
  effects: 'none',
})

const keyed = (keys: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: keys }, (_, i) => [`k${i}`, i]))
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'OK',
    (error: unknown) => HermesError.from(error).code,
  )
const thrownBy = (run: () => void): string => {
  try {
    run()
    return 'OK'
  } catch (error) {
    return HermesError.from(error).code
  }
}

let net: TestNetwork
let pm: Peer
beforeEach(() => {
  net = testNetwork({ seed: 12 })
})
afterEach(() => net[Symbol.asyncDispose]())

async function team(handler: (kind: string, ctx: CallContext<typeof anything>) => unknown): Promise<void> {
  await net.until(net.launch('coder', (peer) => void peer.provide(anything, ({ kind }, ctx) => handler(kind, ctx))))
  pm = await net.peer('pm')
}
const submit = (kind = 'x') => net.until(pm.submit(anything, { kind }))

describe('the result of a task', () => {
  it('that no answer can carry is told as an invalid one, and everything else goes on, after a restart too', async () => {
    const results: Record<string, () => unknown> = {
      deep: () => nested(31),
      wide: () => keyed(9_996),
      wideEnough: () => keyed(9_900),
      deepEnough: () => nested(27),
      long: () => 'x'.repeat(1024 * 1024),
    }
    const provide = (kind: string) => results[kind]?.()
    await team(provide)
    const ends: Record<string, string> = {}
    let task = await submit()
    for (const kind of Object.keys(results)) {
      task = await submit(kind)
      ends[kind] = await net.until(codeOf(task.result()))
    }
    const expected = { deep: 'INVALID_RESULT', wide: 'INVALID_RESULT', long: 'INVALID_RESULT' }
    expect(ends).toEqual({ ...expected, wideEnough: 'OK', deepEnough: 'OK' })
    await net.crash('coder')
    await net.until(net.launch('coder', (peer) => void peer.provide(anything, ({ kind }) => provide(kind))))
    expect((await net.until(task.status())).state).toBe('failed')
  })
})

describe('news of a task', () => {
  it('with many keys come in several answers, none of which is refused', async () => {
    await team((_, ctx) => {
      for (let i = 0; i < 3; i++) ctx.partial({ i, ...keyed(4_500) })
      return { done: true }
    })
    const task = await submit()
    await net.advance('1s')
    const told: unknown[] = []
    const follow = async () => {
      for await (const update of task.updates()) if (update.type === 'partial') told.push(update.data.i)
    }
    await net.until(follow())
    expect(told).toEqual([0, 1, 2])
    expect(await net.until(task.result())).toEqual({ done: true })
  })

  it('that could not be told later are refused to the handler, which goes on', async () => {
    const refused: string[] = []
    await team(async (_, ctx) => {
      for (const data of [keyed(9_997), nested(31), keyed(4_900)]) refused.push(thrownBy(() => ctx.partial(data)))
      const asked = [ctx.ask(keyed(3_000)), ctx.ask(keyed(3_000)), ctx.ask(nested(27))]
      refused.push(...(await Promise.all(asked.slice(1).map(codeOf))))
      await asked[0]
      return { done: true }
    })
    const task = await submit()
    await net.advance('1s')
    const { partial, questions } = await net.until(task.status())
    expect(refused).toEqual(['PAYLOAD_TOO_LARGE', 'INVALID_PAYLOAD', 'OK', 'PAYLOAD_TOO_LARGE', 'INVALID_PAYLOAD'])
    expect([Object.keys(partial).length, questions.length]).toEqual([4_900, 1])
    await net.until(questions[0]?.answer('go') as Promise<void>)
    expect(await net.until(task.result())).toEqual({ done: true })
  })

  it('are what was told, whatever the handler does with its object afterwards', async () => {
    await team(async (_, ctx) => {
      const plan = { steps: [] as number[] }
      for (let i = 1; i <= 3; i++) {
        plan.steps.push(i)
        ctx.partial(plan)
      }
      return plan
    })
    const task = await submit()
    await net.advance('1s')
    const told: unknown[] = []
    const follow = async () => {
      for await (const update of task.updates()) if (update.type === 'partial') told.push(update.data.steps)
    }
    await net.until(follow())
    expect(told).toEqual([[1], [1, 2], [1, 2, 3]])
  })
})

describe('the status of a task', () => {
  it('is the newest, however much has been told before', async () => {
    await team(async (_, ctx) => {
      for (let i = 1; i <= 10; i++) {
        ctx.progress(i / 10)
        ctx.partial({ i, pad: 'x'.repeat(150_000) })
      }
      await net.sleep('60s')
      return {}
    })
    const task = await submit()
    await net.advance('1s')
    const since = net.timeline.now()
    const { state, fraction, partial } = await net.until(task.status())
    expect([state, fraction, partial.i]).toEqual(['working', 1, 10])
    // Read to the end, and no further: nothing waits for more.
    expect(net.timeline.now() - since).toBeLessThan(1_000)
  })

  it('has no question that was answered', async () => {
    await team((_, ctx) => Promise.all([ctx.ask('a'), ctx.ask('b')]))
    const task = await submit()
    await net.advance('1s')
    const { questions } = await net.until(task.status())
    expect(questions.map(({ question }) => question)).toEqual(['a', 'b'])
    await net.until(questions[0]?.answer('yes') as Promise<void>)
    const { state, questions: open } = await net.until(task.status())
    expect([state, open.map(({ question }) => question)]).toEqual(['input_required', ['b']])
    await net.until(open[0]?.answer('no') as Promise<void>)
    expect(await net.until(task.result())).toEqual(['yes', 'no'])
  })
})
