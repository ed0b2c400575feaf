import { beforeAll, describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { type Crafted, craft, newId } from '../craft.ts'
import { eventually } from '../eventually.ts'
import { honestKey, hostileKey, linkScene } from '../link-scene.ts'
import { dialLink, type RawLink } from '../raw-link.ts'
import type { RawPeer } from '../raw-peer.ts'
import { byTier, PATIENCE_MS } from '../tier.ts'
import type { Victim } from '../victim.ts'

describe('an envelope that was captured', () => {
  const { world, peers, fresh, drop, untouched } = linkScene()
  let victim: Victim
  let raw: RawPeer
  beforeAll(() => {
    ;({ victim, raw } = peers())
  })

  /** Sends the same bytes again; resolves with the code of the refusal, or what was answered. */
  async function replay(link: RawLink, crafted: Crafted): Promise<string> {
    const refusals = victim.of('envelope.refused').length
    link.stream.send(crafted.frame)
    const seen = await eventually(() => {
      const [refusal] = victim.of('envelope.refused').slice(refusals)
      return refusal?.code ?? link.heard.find(({ header }) => header.in_reply_to === crafted.leaf)?.header.message_type
    }, 'the end of a replay')
    return seen
  }

  it('gets its old answer on the same link, and starts nothing', async () => {
    const link = await fresh()
    const asked = link.request('echo', 'once')
    expect((await link.answerTo(asked)).payload).toMatchObject({ output: 'once' })
    const before = victim.served.length
    expect(await replay(link, asked)).toBe('response')
    expect(victim.of('dedup.stored')).toHaveLength(1)
    expect(victim.served).toHaveLength(before)
    await drop(link)
    await untouched()
  })

  it('is stale on the same link once its record is settled and forgotten, and starts nothing', async () => {
    const small = await world.peer({ as: actor('small'), allow: [hostileKey], tuning: { dedupIdsPerSender: 2 } })
    const link = await dialLink(raw, hostileKey, small.address)
    const asked = link.request('echo', 'first')
    await link.answerTo(asked)
    for (let i = 0; i < 4; i++) {
      // Only what is known to have arrived may be forgotten.
      link.send({ message_type: 'heartbeat', payload: { time: Date.now(), reply: false, received: 1000 } })
      await link.answerTo(link.request('echo', i))
    }
    small.mark()
    link.stream.send(asked.frame)
    expect(await small.until('envelope.refused')).toMatchObject({ code: 'STALE_SEQUENCE', messageId: asked.messageId })
    expect(small.served).toEqual(['first', 0, 1, 2, 3])
    link.reset()
  })

  it('is stale as an event, on the same link and on the next', async () => {
    const heard: unknown[] = []
    const stop = victim.peer.onEvent('tick', ({ data }) => heard.push(data))
    const link = await fresh()
    const event = link.send({ message_type: 'event', target_capability: 'tick', payload: { data: 1 } })
    await eventually(() => heard.length === 1, 'the event')
    link.stream.send(event.frame)
    await link.answerTo(link.request('echo', 'after'))
    await drop(link)
    const next = await fresh({ epoch: link.epoch, nextSequence: link.sequence })
    next.stream.send(event.frame)
    await next.answerTo(next.request('echo', 'after'))
    expect(heard).toEqual([1])
    stop()
    await drop(next)
    await untouched()
  })

  it('starts nothing over a new link of the same life', async () => {
    const link = await fresh()
    const asked = link.request('echo', 'over a new link')
    await link.answerTo(asked)
    await drop(link)
    const before = victim.served.length
    const next = await fresh({ epoch: link.epoch, nextSequence: link.sequence })
    expect(await replay(next, asked)).toBe('response')
    expect(victim.served).toHaveLength(before)
    expect(victim.of('window.gap')).toEqual([])
    // The sequence goes on where it was.
    expect((await next.answerTo(next.request('echo', 'next'))).payload).toMatchObject({ output: 'next' })
    await drop(next)
    await untouched()
  })

  it('is of another life after the sender was restarted', async () => {
    const link = await fresh()
    const asked = link.request('echo', 'first life')
    await link.answerTo(asked)
    await drop(link)
    const before = victim.served.length
    const next = await fresh({ epoch: link.epoch + 1 })
    expect(await replay(next, asked)).toBe('STALE_EPOCH')
    expect(victim.served).toHaveLength(before)
    expect((await next.answerTo(next.request('echo', 'second life'))).payload).toMatchObject({ output: 'second life' })
    await drop(next)
    await untouched()
  })

  it(
    'is for another life after the victim was restarted, all of ten thousand times',
    async () => {
      const key = actor('restarted')
      const options = { as: key, allow: [hostileKey] }
      const first = await world.peer(options)
      const link = await dialLink(raw, hostileKey, first.address)
      const count = byTier({ test: 200, ci: 2000, long: 10_000 })
      const captured = Array.from({ length: count }, (_, index) =>
        link.craft({ target_capability: 'echo', payload: { input: index } }),
      )
      for (const { frame } of captured) link.stream.send(frame)
      await eventually(() => first.served.length === count, 'all of them to be served', 60_000)
      await first.peer.stop()
      const second = await world.peer(options)
      const next = await dialLink(raw, hostileKey, second.address, { epoch: link.epoch, nextSequence: 1 })
      for (const { frame } of captured) next.stream.send(frame)
      await eventually(() => second.of('envelope.refused').length === count, 'all of them to be refused', 60_000)
      expect(new Set(second.of('envelope.refused').map(({ code }) => code))).toEqual(new Set(['PEER_RESTARTED']))
      expect(second.served).toEqual([])
      // Each has used up its place, so that an honest one after them does not wait.
      next.sequence = count + 1
      expect((await next.answerTo(next.request('echo', 'now'))).payload).toMatchObject({ output: 'now' })
      expect(second.of('window.gap')).toEqual([])
      next.reset()
    },
    PATIENCE_MS,
  )

  it('is remembered although another floods the memory with ids', async () => {
    const other = actor('other')
    const small = await world.peer({
      as: actor('flooded'),
      allow: [hostileKey, other],
      tuning: { dedupIdsPerSender: 50, dedupIdsPerNode: 80 },
    })
    const own = await dialLink(await world.raw(other), other, small.address)
    const kept = own.request('echo', 'kept')
    await own.answerTo(kept)
    const link = await dialLink(raw, hostileKey, small.address)
    for (let i = 0; i < 300; i++) link.request('echo', i)
    // Over its own share it is told so; nothing that has not been fetched is forgotten for it.
    expect((await link.next(({ payload }) => payload.error_code !== undefined)).payload).toMatchObject({
      error_code: 'BUSY',
      retryable: true,
    })
    expect(small.served.filter((input) => typeof input === 'number')).toHaveLength(50)
    own.stream.send(kept.frame)
    await small.until('dedup.stored')
    expect(small.served.filter((input) => input === 'kept')).toHaveLength(1)
    // Marks for ids that were never seen count in the same share.
    for (let i = 0; i < 300; i++)
      link.send({ message_type: 'cancel', payload: { message_id: newId('msg'), expires_at: Date.now() + 60_000 } })
    expect((await own.answerTo(own.request('echo', 'still served'))).payload).toMatchObject({ output: 'still served' })
    expect(small.of('link.down')).toEqual([])
    link.reset()
  })

  it('is worth nothing once it has expired, in the same life', async () => {
    const link = await fresh()
    const old = link.craft({
      target_capability: 'echo',
      payload: { input: 'old' },
      timestamp: Date.now() - 120_000,
      expires_at: Date.now() - 60_000,
    })
    const before = victim.served.length
    expect(await replay(link, old)).toBe('EXPIRED')
    expect(victim.served).toHaveLength(before)
    await drop(link)
    await untouched()
  })

  it('is not taken with an expiry more than 24 hours ahead, or from the future', async () => {
    const link = await fresh()
    const day = 86_400_000
    expect(await replay(link, link.craft({ target_capability: 'echo', expires_at: Date.now() + day + 60_000 }))).toBe(
      'EXPIRY_TOO_FAR',
    )
    expect(
      await replay(
        link,
        link.craft({ target_capability: 'echo', timestamp: Date.now() + 120_000, expires_at: Date.now() + 180_000 }),
      ),
    ).toBe('EXPIRY_TOO_FAR')
    await drop(link)
    await untouched()
  })

  it('of another sender is refused on this link', async () => {
    const link = await fresh()
    const before = victim.served.length
    const from = { self: honestKey, to: 'victim', toEpoch: link.toEpoch, epoch: Date.now(), sequence: 1 }
    const captured = craft(from, { target_capability: 'echo', payload: { input: 'stolen' } })
    expect(await replay(link, captured)).toBe('WRONG_SENDER')
    expect(victim.served).toHaveLength(before)
    await drop(link)
    await untouched()
  })
})
