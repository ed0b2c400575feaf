import { isHermesError } from '@hermes-peer/protocol'
import { seededRandom } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import { line, type Serve, WORK } from './line.ts'

const CALLS = 40
const SEEDS = Array.from({ length: 4 }, (_, index) => index + 1)
/** Pairs that can reach each other, beside those that stand next to each other. */
const ALSO = [
  ['a', 'c'],
  ['b', 'd'],
  ['c', 'e'],
] as const
const PAIRS = ['ab', 'bc', 'cd', 'de', ...ALSO.map((pair) => pair.join(''))]

/** Calls of a that b and c hand on to d and e, or to each other, while envelopes are lost and repeated and links are cut. */
async function weather(seed: number) {
  const random = seededRandom(`weather ${seed}`)
  const dice = random.fork('frames')
  let calm = true
  const served: Serve = async ({ n }, ctx) => {
    await scene.net.sleep(random.int(1, 800), { signal: ctx.signal })
    return { by: 'end', n }
  }
  const handsOn: Serve = (_, ctx) => ctx.forward(WORK.once)
  // b and c provide both, so that the contract that is served is what they look for.
  const either: Serve = async (input, ctx) => {
    try {
      return await ctx.forward(WORK.none)
    } catch {
      return handsOn(input, ctx)
    }
  }
  const scene = await line('abcde', {
    seed,
    serve: { b: either, c: either, d: served, e: served },
    also: ALSO,
    sendFilter: () => (_to, frame, deliver) => {
      if (calm || dice.next() > 0.1) deliver(frame)
      if (!calm && dice.next() < 0.1) deliver(frame)
    },
  })
  const { net, a } = scene
  calm = false
  const ends: { once: boolean; code: string; late: number; messageId: string | undefined; by: string }[] = []
  const running: Promise<void>[] = []
  for (let n = 0; n < CALLS; n++) {
    const once = random.next() < 0.5
    const timeoutMs = random.int(500, 6000)
    const since = net.timeline.now()
    const agent = random.next() < 0.5 ? 'b' : 'c'
    const end = (code: string, by: string, messageId: string | undefined) =>
      ends.push({ once, code, by, messageId, late: net.timeline.now() - since - timeoutMs })
    running.push(
      a.request(once ? WORK.once : (WORK.none as never), { n }, { agent, timeoutMs }).then(
        (given) => void end('OK', given.agent, given.messageId),
        (error: unknown) => {
          if (!isHermesError(error)) throw error
          end(error.code, '', error.messageId)
        },
      ),
    )
    if (random.next() < 0.4) {
      const [one, other] = random.pick(PAIRS).split('') as [string, string]
      net.faults.cut(net.peerId(one), net.peerId(other), { afterBytes: random.int(0, 2000) })
    }
    await net.advance(random.int(10, 400))
  }
  calm = true
  await net.until(Promise.all(running))
  await net.advance('15s')
  return { scene, ends }
}

describe('handing on in bad weather', () => {
  it.each(SEEDS)(
    'seed %i: each call ends in time, work with effects once is started once, then all is well',
    async (seed) => {
      const { scene, ends } = await weather(seed)
      const { net, a, started } = scene
      expect(ends).toHaveLength(CALLS)
      expect(ends.filter(({ late }) => late > 250)).toEqual([])
      expect(a.balance()).toMatchObject({ calls: CALLS, inFlight: 0 })
      expect(ends.some(({ code, by }) => code === 'OK' && (by === 'd' || by === 'e'))).toBe(true)
      const starts = new Map<string, number>()
      for (const { by, ctx } of started) {
        const key = `${by} ${ctx.messageId}`
        starts.set(key, (starts.get(key) ?? 0) + 1)
      }
      // At one peer in one life, whatever the effects.
      expect([...starts].filter(([, count]) => count > 1)).toEqual([])
      for (const { once, messageId } of ends) {
        if (!once || messageId === undefined) continue
        const ended = started.filter(({ by, ctx }) => ctx.messageId === messageId && (by === 'd' || by === 'e'))
        expect(ended.length).toBeLessThanOrEqual(1)
      }
      // Nobody says what it cannot know.
      expect(scene.of('a', 'envelope.refused')).toEqual([])
      expect(await net.until(a.call(WORK.none, { n: 1 }, { agent: 'b', timeoutMs: 10_000 }))).toMatchObject({ n: 1 })
    },
  )
})
