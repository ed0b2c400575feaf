import { createHash } from 'node:crypto'
import { chunkChain, decodeFrame, decodeHeader, encodeData, encodeEnd } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import type { Crafted } from '../craft.ts'
import { craft } from '../craft.ts'
import { eventually } from '../eventually.ts'
import { heldSince, MiB } from '../memory.ts'
import type { RawLink } from '../raw-link.ts'
import type { RawStream } from '../raw-stream.ts'
import { scene } from '../scene.ts'
import { apart, asBefore, attacked, open, otherKey, readStream, streaming } from '../stream-tools.ts'

describe('streams under attack: payloads that travel apart', () => {
  const payload = Buffer.from(JSON.stringify({ input: 'x'.repeat(2 * MiB) }))
  const end = (link: RawLink, leaf: string, chain: { count: number; hash: string }, more: object = {}) =>
    encodeEnd(
      craft(link, {
        message_type: 'end',
        in_reply_to: leaf,
        payload: { status: 'completed', count: chain.count, running_hash: chain.hash, ...more },
      }).frame,
    )

  async function send(
    change: (pieces: Uint8Array[]) => Uint8Array[],
    ending: (link: RawLink, leaf: string, chain: { count: number; hash: string }) => Uint8Array | undefined = end,
  ) {
    const world = scene()
    const { victim, raw, link } = await attacked(world)
    const crafted = apart(link, payload)
    const stream = await open(raw, victim)
    stream.send(crafted.frame)
    const chain = chunkChain(crafted.leaf)
    const pieces: Uint8Array[] = []
    for (let at = 0; at < payload.length; at += 65_536) pieces.push(payload.subarray(at, at + 65_536))
    for (const [at, piece] of change(pieces).entries()) {
      const chunk = encodeData(at + 1, piece)
      chain.add(at + 1, chunk)
      stream.send(chunk)
    }
    const last = ending(link, crafted.leaf, chain)
    if (last) stream.send(last)
    else stream.close()
    return { world, victim, raw, link, crafted }
  }

  it('is served when it is whole', async () => {
    const { link, crafted, victim, raw } = await send((pieces) => pieces, end)
    // What it gives back is large too, and comes over a stream that the victim opens.
    const back = await raw.accept()
    const frame = decodeFrame(await back.part())
    if (frame.tag !== 0) throw new Error('another tag')
    expect(decodeHeader(frame.header)).toMatchObject({
      message_type: 'response',
      in_reply_to: crafted.leaf,
      sequence: 0,
    })
    back.reset()
    expect(victim.served).toHaveLength(1)
    await asBefore(victim, raw, link)
  })

  const broken: [string, string, Parameters<typeof send>[0], Parameters<typeof send>[1]?][] = [
    ['a piece too few', 'PAYLOAD_MISMATCH', (pieces) => pieces.slice(0, -1)],
    ['a piece too many', 'PAYLOAD_MISMATCH', (pieces) => [...pieces, Buffer.from('x')]],
    [
      'two pieces in the other order',
      'PAYLOAD_MISMATCH',
      (pieces) => [pieces.at(-1) as Uint8Array, ...pieces.slice(1, -1), pieces[0] as Uint8Array],
    ],
    ['no end', 'STREAM_BROKEN', (pieces) => pieces, () => undefined],
    [
      'an end with another hash',
      'STREAM_BROKEN',
      (pieces) => pieces,
      (link, leaf, chain) => end(link, leaf, { ...chain, hash: 'a'.repeat(64) }),
    ],
    [
      'an end with another count',
      'STREAM_BROKEN',
      (pieces) => pieces,
      (link, leaf, chain) => end(link, leaf, { ...chain, count: 5 }),
    ],
    [
      'an end of another stream',
      'STREAM_BROKEN',
      (pieces) => pieces,
      (link, _, chain) => end(link, createHash('sha256').digest('hex'), chain),
    ],
    [
      'an end that says it failed',
      'STREAM_BROKEN',
      (pieces) => pieces,
      (link, leaf, chain) => end(link, leaf, chain, { status: 'failed', error: {} }),
    ],
    [
      'an end that another key signed',
      'WRONG_SENDER',
      (pieces) => pieces,
      (link, leaf, chain) => end({ ...link, self: { ...link.self, key: otherKey.key } } as RawLink, leaf, chain),
    ],
  ]
  it.each(broken)('with %s it is refused: %s, and never reaches the handler', async (_, code, change, ending) => {
    const { victim, raw, link, crafted, world } = await send(change, ending)
    const told = await link.answerTo(crafted)
    expect(told.header.message_type).toBe('error')
    expect(told.payload.error_code).toBe(code)
    expect(victim.served).toEqual([])
    await asBefore(victim, raw, link)
    expect(world.escaped).toEqual([])
  })

  it('a payload said to be 64 MiB costs nothing until it comes, and no more than the share of its sender', async () => {
    const world = scene()
    const { victim, raw, link } = await attacked(world)
    const held = heldSince()
    const streams: RawStream[] = []
    const leaves: Crafted[] = []
    for (let i = 0; i < 3; i++) {
      const crafted = apart(link, payload, { payload_size: 64 * MiB })
      leaves.push(crafted)
      const stream = await open(raw, victim)
      stream.send(crafted.frame)
      streams.push(stream)
    }
    // Two are what one sender may have on its way: 128 MiB.
    expect((await link.answerTo(leaves[2] as Crafted)).payload).toMatchObject({ error_code: 'BUSY', retryable: true })
    expect(held(4 * MiB)).toBeLessThan(4 * MiB)
    for (const stream of streams) stream.reset()
    await eventually(() => victim.of('stream.ended').length === 3, 'their ends')
    await asBefore(victim, raw, link)
  })

  it('a payload that trickles has no longer than its work, and then holds no share any more', async () => {
    const world = scene()
    const { victim, raw, link } = await attacked(world)
    const crafted = apart(link, payload, { timeout_ms: 400, payload_size: 64 * MiB })
    const stream = await open(raw, victim)
    stream.send(crafted.frame)
    let index = 0
    const trickle = setInterval(() => stream.send(encodeData(++index, Buffer.from('x'))), 20)
    const told = await link.answerTo(crafted).finally(() => clearInterval(trickle))
    expect(told.payload).toMatchObject({ error_code: 'TIMEOUT' })
    expect(victim.served).toEqual([])
    await eventually(() => victim.of('stream.ended').length === 1, 'its end')
    await asBefore(victim, raw, link)
  })

  it('an answer that nobody has asked for is refused before its payload', async () => {
    const world = scene()
    const { victim, raw, link } = await attacked(world)
    const crafted = apart(link, payload, {
      message_type: 'response',
      target_capability: undefined,
      in_reply_to: 'c'.repeat(64),
    })
    const stream = await open(raw, victim)
    stream.send(crafted.frame)
    expect(await readStream(stream, crafted.leaf)).toMatchObject({ abort: 'CANCELLED' })
    expect(await victim.until('answer.late')).toMatchObject({ from: 'hostile' })
    await asBefore(victim, raw, link)
  })

  it('what belongs on a stream is refused on a link', async () => {
    const world = scene()
    const { victim, raw, link, runs } = await attacked(world)
    const crafted = streaming(link, 3)
    link.stream.send(crafted.frame)
    expect((await link.answerTo(crafted)).payload).toMatchObject({ error_code: 'MALFORMED' })
    expect(runs.started).toBe(0)
    await asBefore(victim, raw, link)
  })

  it('a duplicate of a request whose answer was large gets RESULT_GONE; it is not started again', async () => {
    const { link, victim, raw, crafted } = await send((pieces) => pieces, end)
    const back = await raw.accept()
    back.reset()
    const again = apart(link, payload, { message_id: crafted.messageId, attempt: 2 })
    const stream = await open(raw, victim)
    stream.send(again.frame)
    const chain = chunkChain(again.leaf)
    for (let at = 0, index = 1; at < payload.length; at += 65_536, index++) {
      const chunk = encodeData(index, payload.subarray(at, at + 65_536))
      chain.add(index, chunk)
      stream.send(chunk)
    }
    stream.send(end(link, again.leaf, chain))
    expect((await link.answerTo(again)).payload).toMatchObject({ error_code: 'RESULT_GONE', retryable: false })
    const asked = link.request('hermes.outcome', {
      message_id: crafted.messageId,
      recipient_epoch: link.toEpoch,
      expires_at: Date.now() + 60_000,
    })
    expect((await link.answerTo(asked)).payload).toMatchObject({
      output: { state: 'done', outcome: { message_type: 'error', payload: { error_code: 'RESULT_GONE' } } },
    })
    expect(victim.served).toHaveLength(1)
  })
})
