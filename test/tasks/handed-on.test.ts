import { join } from 'node:path'
import { capability, type Peer } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { actor } from '../hostile/actors.ts'
import { within } from '../hostile/eventually.ts'
import { scene } from '../hostile/scene.ts'

const [a, b, c] = [actor('a'), actor('b'), actor('c')]

const job = capability('job', {
  description: 'Asks, and says what it was told.',
  input: z.object({ n: z.number() }),
  output: z.object({ by: z.string(), told: z.string() }),
  partial: z.object({ so_far: z.number() }),
  asks: { question: z.string(), answer: z.string() },
  effects: 'none',
})

describe('a task that is handed on over real links', () => {
  it('a → b → c, where a and c have no link: news, question, restarts of both others, and the result', async () => {
    const world = scene()
    const kept = (name: string) => ({
      journal: join(world.place.path, `${name}.journal`),
      tuning: { reconnectMs: 50, reconnectCapMs: 300, dialTimeoutMs: 1000 },
    })
    const first = await world.peer({ as: a, allow: [b, c], ...kept('a') })
    const middle = () =>
      world.peer({
        as: b,
        allow: [a, c],
        ...kept('b'),
        bootstrap: [first.address],
        prepare: (peer: Peer) => peer.provide(job, (_, ctx) => ctx.forward('c')),
      })
    let relay = await middle()
    const last = () =>
      world.peer({
        as: c,
        allow: [a, b],
        ...kept('c'),
        bootstrap: [relay.address],
        prepare: (peer: Peer) =>
          peer.provide(job, async (_, ctx) => {
            ctx.partial({ so_far: 1 })
            return { by: 'c', told: await ctx.ask(`${ctx.caller} by ${ctx.via.join()}?`) }
          }),
      })
    let holder = await last()
    await relay.until('directory.changed', ({ agentId }) => agentId === 'c')
    await first.until('directory.changed', ({ agentId }) => agentId === 'b')

    const task = await first.peer.submit(job, { n: 1 }, { agent: 'b' })
    await relay.until('task.handed')
    // Both others end and come back, each from its journal, the first of them under a new address.
    await holder.peer.stop({ drainMs: 0 })
    holder = await last()
    await relay.peer.stop({ drainMs: 0 })
    relay = await middle()
    await holder.peer.connect(relay.address)

    const told: string[] = []
    const follow = async (): Promise<void> => {
      for await (const update of task.updates()) {
        told.push(update.type === 'state' || update.type === 'end' ? update.state : update.type)
        if (update.type === 'question') await update.answer(update.question).catch(() => undefined)
      }
    }
    await within(25_000, 'the end', follow())
    expect(told.at(-1)).toBe('completed')
    expect(told).toContain('partial')
    expect(await task.result()).toEqual({ by: 'c', told: 'a by b?' })
    expect(task.agent).toBe('c')
    expect(first.of('link.up').map(({ agentId }) => agentId)).not.toContain('c')
    expect(world.escaped).toEqual([])
  })
})
