import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pattern, type Recorder } from '../../src/compliance/recorder.ts'
import { worldOf } from '../support/world.ts'

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      size: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 90_000 })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 5 }) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** Does the steps at both ends in turn; returns what each has sent. */
async function play(
  ends: [Recorder, Recorder],
  steps: readonly Step[],
  advance: (ms: number) => Promise<void>,
): Promise<[Uint8Array, Uint8Array]> {
  const sent: [Uint8Array[], Uint8Array[]] = [[], []]
  for (const [index, one] of steps.entries()) {
    const side = index % 2 === 0 ? 0 : 1
    const { channel } = ends[side]
    if (one.do === 'send') {
      const bytes = pattern(one.size, index)
      sent[side].push(bytes)
      channel.send(bytes)
    } else if (one.do === 'wait') await advance(one.ms)
    else channel[one.do]()
  }
  return [Buffer.concat(sent[0]), Buffer.concat(sent[1])]
}

describe('a channel, whatever is done with it', () => {
  it('carries every byte in order and ends once on each side without an error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.array(step, { maxLength: 40 }), async (seed, steps) => {
        const { peer, channel, timeline } = await worldOf('ab', { seed })
        const { here, there } = await channel(peer('a'), peer('b'))
        const [up, down] = await play([here, there], steps, (ms) => timeline.advance(ms))
        const closing = [here.channel.close(), there.channel.close()]
        for (const end of [here, there]) end.channel.resume()
        await timeline.runUntil(Promise.all(closing))
        await timeline.advance('1s')
        expect(Buffer.compare(there.bytes(), up)).toBe(0)
        expect(Buffer.compare(here.bytes(), down)).toBe(0)
        expect([here.closings, there.closings]).toEqual([[undefined], [undefined]])
        expect(timeline.pending).toBe(0)
      }),
      { numRuns: 150 },
    )
  })

  it('is cut after exactly the bytes that were asked for; what arrived is what was sent first', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.nat(120_000), fc.array(step, { maxLength: 30 }), async (seed, cutAt, steps) => {
        const { peer, channel, timeline, world } = await worldOf('ab', { seed })
        const { here, there } = await channel(peer('a'), peer('b'))
        expect(world.faults.cut(peer('a').peerId, peer('b').peerId, { afterBytes: cutAt })).toBe(1)
        const [up, down] = await play([here, there], steps, (ms) => timeline.advance(ms))
        for (const end of [here, there]) end.channel.resume()
        await timeline.advance('1s')
        const isCut = cutAt === 0 || here.closings.length > 0
        expect(Buffer.compare(there.bytes(), up.subarray(0, there.size))).toBe(0)
        expect(Buffer.compare(here.bytes(), down.subarray(0, here.size))).toBe(0)
        // A paused reader may lose what had arrived when the reset comes, never get more.
        expect(here.size + there.size).toBeLessThanOrEqual(cutAt)
        expect(isCut).toBe(up.length + down.length >= cutAt)
        expect(world.faults.hits.cut).toBe(isCut ? 1 : 0)
        expect([here, there].map(({ closings }) => closings.length)).toEqual(isCut ? [1, 1] : [0, 0])
        if (isCut) for (const { closings } of [here, there]) expect(closings[0]).toBeInstanceOf(Error)
      }),
      { numRuns: 150 },
    )
  })

  it('tells one who paused of the end only when it goes on', async () => {
    const { peer, channel, timeline } = await worldOf('ab')
    const { here, there } = await channel(peer('a'), peer('b'))
    here.channel.pause()
    await timeline.runUntil(there.channel.close())
    await timeline.advance('1s')
    expect(here.closings).toEqual([])
    here.channel.resume()
    expect(here.closings).toEqual([undefined])
  })

  it('is divided into pieces in many ways', async () => {
    const { peer, channel, timeline } = await worldOf('ab')
    const { here, there } = await channel(peer('a'), peer('b'))
    for (let i = 0; i < 400; i++) {
      here.channel.send(pattern(1_000, i))
      if (i % 3 === 0) await timeline.advance(1)
    }
    await timeline.runUntil(() => there.size === 400_000)
    const sizes = there.pieces.map((piece) => piece.length)
    expect(sizes.filter((size) => size <= 16).length).toBeGreaterThan(5)
    expect(sizes.filter((size) => size > 1_000).length).toBeGreaterThan(5)
    expect(sizes.filter((size) => size > 16 && size < 1_000).length).toBeGreaterThan(20)
  })

  it('is reset when its sender goes on long after it was told to hold back', async () => {
    const { peer, channel, timeline } = await worldOf('ab', { settings: { sendLimitBytes: 1_000_000 } })
    const { here, there } = await channel(peer('a'), peer('b'))
    there.channel.pause()
    for (let i = 0; i < 30; i++) here.channel.send(pattern(64 * 1024, i))
    expect(here.closings).toEqual([expect.objectContaining({ code: 'QUEUE_FULL' })])
    await timeline.advance('1s')
    expect(there.closings).toHaveLength(1)
  })

  it('gives the receiver memory of its own', async () => {
    const { peer, channel, timeline } = await worldOf('ab')
    const { here, there } = await channel(peer('a'), peer('b'))
    const bytes = Buffer.from(pattern(1_000, 1))
    here.channel.send(bytes)
    await timeline.runUntil(() => there.size === 1_000)
    for (const piece of there.pieces) piece.fill(0)
    expect(Buffer.compare(bytes, pattern(1_000, 1))).toBe(0)
  })
})
