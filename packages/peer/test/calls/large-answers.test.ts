import { capability } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'

const work = capability('work', { description: 'Works.', input: z.any(), output: z.string(), effects: 'none' })
const steps = capability('steps', {
  description: 'Steps.',
  input: z.any(),
  yields: z.number(),
  output: z.any(),
  effects: 'none',
})
const LARGE = 'x'.repeat(1_200_000)

let net: TestNetwork
beforeEach(() => {
  net = testNetwork({ seed: 5 })
})
afterEach(() => net[Symbol.asyncDispose]())

/** A provider that may have one stream open with each agent. */
async function scene() {
  const b = await net.peer('b', { tuning: { streamsPerPeer: 1, streamIdleMs: 300_000 } })
  b.provide(work, () => LARGE)
  b.provide(steps, async function* (_, { signal }) {
    yield 1
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  const a = await net.peer('a', { tuning: { streamIdleMs: 300_000 } })
  await net.advance('3s')
  return a
}

describe('answers that travel apart', () => {
  it('wait for their turn where the bound of streams is reached', async () => {
    const a = await scene()
    const answers = [1, 2, 3].map((n) => a.call(work, n, { timeoutMs: 20_000 }))
    expect((await net.until(Promise.all(answers))).map(({ length }) => length)).toEqual([
      1_200_000, 1_200_000, 1_200_000,
    ])
  })

  it('wait for streams of the other side too, and never longer than an answer lives: the caller is told then', async () => {
    const a = await scene()
    const stream = a.stream(steps, 1, { timeoutMs: 200_000 })
    const reader = stream[Symbol.asyncIterator]()
    await net.until(reader.next())
    const since = net.timeline.now()
    stream.result.catch(() => undefined)
    const answer = a.call(work, 1, { timeoutMs: 100_000 }).catch((error: { code: string }) => error.code)
    expect(await net.until(answer, { limitMs: 110_000 })).toBe('RESULT_GONE')
    expect(net.timeline.now() - since).toBeLessThan(61_000)
    stream.cancel()
    expect(await net.until(a.call(work, 2, { timeoutMs: 20_000 }))).toHaveLength(1_200_000)
  })
})
