import { describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { capabilityEntry, dialLink } from '../raw-link.ts'
import { scene } from '../scene.ts'
import { slow } from '../victim.ts'

const victimKey = actor('victim')
const hostileKey = actor('hostile')

describe('F-10 counter restarts after the sender restarts', () => {
  it('serves the new life at once, and nothing of the old one any more', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    const first = await world.raw(hostileKey)
    const link = await dialLink(first, hostileKey, victim.address)
    const sent = Array.from({ length: 500 }, (_, index) => link.request('echo', index + 1))
    await eventually(() => victim.served.length === 500, 'all 500 to be served', 30_000)
    expect(victim.served).toEqual(Array.from({ length: 500 }, (_, index) => index + 1))
    // It is gone without a word.
    for (const connection of first.connections) connection.abort(new Error('killed'))
    await first.stop()

    victim.mark()
    const second = await world.raw(hostileKey)
    const next = await dialLink(second, hostileKey, victim.address, { epoch: link.epoch + 1 })
    const asked = [1, 2, 3].map((index) => next.request('echo', `second life ${index}`))
    for (const one of asked) expect((await next.answerTo(one)).header.message_type).toBe('response')
    expect(victim.served.slice(500)).toEqual(['second life 1', 'second life 2', 'second life 3'])
    expect(victim.of('window.gap')).toEqual([])

    for (const one of sent.slice(9, 12)) next.stream.send(one.frame)
    await eventually(() => victim.of('envelope.refused').length === 3, 'three refusals')
    expect(victim.of('envelope.refused').map(({ code }) => code)).toEqual(['STALE_EPOCH', 'STALE_EPOCH', 'STALE_EPOCH'])
    expect(victim.served).toHaveLength(503)
    expect(world.escaped).toEqual([])
  })

  it('ends calls to the old life with a clear code, and its late answers are no answers', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    const raw = await world.raw(hostileKey)
    const capabilities = [capabilityEntry('work', { effects: 'once' })]
    const link = await dialLink(raw, hostileKey, victim.address, { capabilities })
    await victim.until('directory.changed', ({ agentId }) => agentId === 'hostile')
    const call = victim.peer.callDynamic('work', {}, { agent: 'hostile', timeoutMs: 10_000 })
    const asked = await link.next(({ header }) => header.target_capability === 'work')
    const ended = expect(call).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', messageId: asked.header.message_id })
    // The next life comes up while the old link still stands; asked for the outcome it cannot tell.
    const next = await dialLink(raw, hostileKey, victim.address, { epoch: link.epoch + 1, capabilities })
    expect(await victim.until('link.down')).toMatchObject({ agentId: 'hostile', code: 'PEER_RESTARTED' })
    const outcome = await next.next(({ header }) => header.target_capability === 'hermes.outcome')
    expect(outcome.payload).toMatchObject({
      input: { message_id: asked.header.message_id, recipient_epoch: link.epoch },
    })
    next.answer(outcome, { state: 'unknown' })
    await ended
    expect(world.escaped).toEqual([])
    next.answer(asked, 'too late')
    await victim.until('answer.late')
    expect(victim.peer.balance()).toMatchObject({ calls: 1, failed: 1, inFlight: 0 })
    expect(world.escaped).toEqual([])
  })

  it('aborts work for the old life', async () => {
    const world = scene()
    const aborted: unknown[] = []
    const victim = await world.peer({
      as: victimKey,
      allow: [hostileKey],
      prepare: (peer) =>
        peer.provide(
          slow,
          (_, { signal }) =>
            new Promise((_resolve, reject) =>
              signal.addEventListener('abort', () => {
                aborted.push((signal.reason as { code: string }).code)
                reject(signal.reason)
              }),
            ),
        ),
    })
    const raw = await world.raw(hostileKey)
    const link = await dialLink(raw, hostileKey, victim.address)
    link.request('slow', null)
    await victim.until('handler.started')
    const next = await dialLink(raw, hostileKey, victim.address, { epoch: link.epoch + 1 })
    await eventually(() => aborted.length === 1, 'the signal of the handler')
    expect(aborted).toEqual(['CALLER_GONE'])
    expect((await next.answerTo(next.request('echo', 1))).payload).toMatchObject({ output: 1 })
  })
})
