import { capability } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { actor } from '../actors.ts'
import { within } from '../eventually.ts'
import { scene } from '../scene.ts'
import { echo, type Victim } from '../victim.ts'

const [a, b, c] = [actor('a'), actor('b'), actor('c')]

const one = (name: string) =>
  capability(name, {
    description: 'One at a time.',
    input: z.unknown(),
    output: z.unknown(),
    effects: 'none',
    constraints: { maxConcurrency: 1 },
  })
const ask = one('ask')
const help = one('help')

describe('F-35 mutual waiting', () => {
  /** Two peers that are linked; `a` is given what each does. */
  async function two(
    handlers: (peers: { a: () => Victim; b: () => Victim }) => {
      a: (victim: Victim['peer']) => void
      b: (victim: Victim['peer']) => void
    },
  ) {
    const world = scene()
    let [first, second]: (Victim | undefined)[] = []
    const prepare = handlers({ a: () => first as Victim, b: () => second as Victim })
    first = await world.peer({ as: a, allow: [b], prepare: prepare.a })
    second = await world.peer({ as: b, allow: [a], prepare: prepare.b, bootstrap: [first.address] })
    await first.until('directory.changed')
    await second.until('directory.changed')
    return { world, a: first, b: second }
  }

  it('a handler that asks its caller back on another capability is answered, with one place each', async () => {
    const { a: first, world } = await two((peers) => ({
      a: (peer) => peer.provide(help, (input) => `helped with ${input}`),
      b: (peer) =>
        peer.provide(ask, async (input) => `asked: ${await peers.b().peer.call(help, input, { agent: 'a' })}`),
    }))
    expect(await within(10_000, 'the answer', first.peer.call(ask, 'x', { agent: 'b' }))).toBe('asked: helped with x')
    expect(world.escaped).toEqual([])
  })

  it('both ways at once, again and again: nobody waits for ever', async () => {
    const {
      a: first,
      b: second,
      world,
    } = await two((peers) => ({
      a: (peer) =>
        peer.provide(help, (input) => input).provide(ask, (input) => peers.a().peer.call(help, input, { agent: 'b' })),
      b: (peer) =>
        peer.provide(help, (input) => input).provide(ask, (input) => peers.b().peer.call(help, input, { agent: 'a' })),
    }))
    const all = Promise.all(
      Array.from({ length: 50 }, (_, index) => [
        first.peer.call(ask, index, { agent: 'b' }),
        second.peer.call(ask, index, { agent: 'a' }),
      ]).flat(),
    )
    expect(await within(20_000, 'all answers', all)).toEqual(
      Array.from({ length: 50 }, (_, index) => [index, index]).flat(),
    )
    expect(world.escaped).toEqual([])
  })

  it('a call that would wait for itself fails at once with the path, not by its deadline', async () => {
    const { a: first, world } = await two((peers) => ({
      a: (peer) => peer.provide(ask, (input) => peers.a().peer.call(ask, input, { agent: 'b' })),
      b: (peer) => peer.provide(ask, (input) => peers.b().peer.call(ask, input, { agent: 'a' })),
    }))
    const since = performance.now()
    const error = await first.peer
      .call(ask, 'round', { agent: 'b', timeoutMs: 30_000 })
      .catch((reason: unknown) => reason)
    expect(performance.now() - since).toBeLessThan(10_000)
    // a calls b#ask, which calls a#ask, which calls b#ask: there it closes.
    expect(error).toMatchObject({ code: 'HANDLER_ERROR', details: { cause_code: 'HANDLER_ERROR' } })
    const codes = first.of('handler.ended').map(({ cause }) => (cause as { code?: string } | undefined)?.code)
    expect(codes).toContain('CALL_CYCLE')
    expect(world.escaped).toEqual([])
  })

  it('a cycle over three agents is seen too', async () => {
    const world = scene()
    const peers: Victim[] = []
    const next = ['b', 'c', 'a']
    for (const [index, self] of [a, b, c].entries()) {
      peers.push(
        await world.peer({
          as: self,
          allow: [a, b, c].filter((other) => other !== self),
          bootstrap: peers.map(({ address }) => address),
          prepare: (peer) =>
            peer.provide(ask, () => (peers[index] as Victim).peer.call(ask, null, { agent: next[index] as string })),
        }),
      )
    }
    for (const [index, { peer }] of peers.entries()) await peer.manifest(next[index] as string, { timeoutMs: 10_000 })
    const since = performance.now()
    await expect((peers[0] as Victim).peer.call(ask, null, { agent: 'b', timeoutMs: 30_000 })).rejects.toMatchObject({
      code: 'HANDLER_ERROR',
    })
    expect(performance.now() - since).toBeLessThan(10_000)
    const causes = peers.flatMap(({ of }) =>
      of('handler.ended').map(({ cause }) => cause as { code?: string; details?: { path?: string[] } } | undefined),
    )
    const cycle = causes.find((cause) => cause?.code === 'CALL_CYCLE')
    expect(cycle?.details?.path).toEqual(['b#ask', 'c#ask', 'a#ask', 'b#ask'])
    expect(world.escaped).toEqual([])
  })

  it('an answer of the same tick is not lost: whoever waits is there before the first byte leaves', async () => {
    const { a: first, b: second } = await two(() => ({ a: () => undefined, b: () => undefined }))
    for (let round = 0; round < 20; round++) {
      const calls = Array.from({ length: 20 }, (_, index) => first.peer.call(echo, index, { agent: 'b' }))
      expect(await within(10_000, 'all answers', Promise.all(calls))).toEqual(
        Array.from({ length: 20 }, (_, index) => index),
      )
    }
    expect(first.of('answer.late')).toEqual([])
    expect(second.of('answer.late')).toEqual([])
  })

  it('a request of the one who is asked is no answer to what it was asked', async () => {
    const { a: first, b: second } = await two((peers) => ({
      a: (peer) => peer.provide(help, () => 'not the answer'),
      b: (peer) =>
        peer.provide(ask, async () => {
          // Asks back many times, and only then answers.
          for (let i = 0; i < 5; i++) await peers.b().peer.call(help, i, { agent: 'a' })
          return 'the answer'
        }),
    }))
    const own = Array.from({ length: 5 }, (_, index) => second.peer.call(echo, index, { agent: 'a' }))
    expect(await within(10_000, 'the answer', first.peer.call(ask, null, { agent: 'b' }))).toBe('the answer')
    expect(await Promise.all(own)).toEqual([0, 1, 2, 3, 4])
  })
})
