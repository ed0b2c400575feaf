import { encodeAbort, encodeData, encodeEnd, encodePause, encodeResume, STREAM_PROTOCOL } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import type { Draft } from '../craft.ts'
import { craft } from '../craft.ts'
import { eventually } from '../eventually.ts'
import { heldSince, MiB } from '../memory.ts'
import { dialLink, type RawLink } from '../raw-link.ts'
import { partOf, type RawStream, varint } from '../raw-stream.ts'
import { scene } from '../scene.ts'
import { apart, asBefore, attacked, open, otherKey, readStream, streaming } from '../stream-tools.ts'

describe('streams under attack: who may open one', () => {
  it('nobody without a link', async () => {
    const world = scene()
    const { victim, link, raw, runs } = await attacked(world)
    const stranger = await world.raw(otherKey)
    const stream = await stranger.open(victim.address, STREAM_PROTOCOL)
    stream.send(streaming(link, 3).frame)
    expect(await readStream(stream, '00')).toMatchObject({ indices: [], cut: true })
    expect(await victim.until('stream.refused')).toMatchObject({ code: 'NOT_ALLOWED', peerId: stranger.peerId })
    expect(runs.started).toBe(0)
    await asBefore(victim, raw, link)
  })

  const forged: [string, string, (link: RawLink) => Uint8Array][] = [
    [
      'a signature of another key',
      'BAD_SIGNATURE',
      (link) => streaming(link, 3, { sign: (bytes) => otherKey.key.sign(bytes) }).frame,
    ],
    [
      'a payload that was swapped',
      'PAYLOAD_MISMATCH',
      (link) => streaming(link, 3, { swapPayload: () => Buffer.from('{"input":4}') }).frame,
    ],
    [
      'the name of another agent',
      'WRONG_SENDER',
      (link) => streaming(link, 3, { sender: { agent_id: 'other', key: otherKey.key.publicKey.fingerprint } }).frame,
    ],
    [
      'an envelope of a link',
      'MALFORMED',
      (link) => craft(link, { target_capability: 'echo', payload: { input: 1 } }).frame,
    ],
    [
      'a payload of 64 MiB and a byte',
      'PAYLOAD_TOO_LARGE',
      (link) => apart(link, Buffer.alloc(2 * MiB), { payload_size: 64 * MiB + 1 }).frame,
    ],
    ['no frame at all', 'MALFORMED', () => partOf(Buffer.from([0, 1, 2]))],
  ]
  it.each(forged)('%s is refused without a word: %s, and counts against the link', async (_, code, make) => {
    const world = scene()
    const { victim, raw, link, runs } = await attacked(world)
    const stream = await open(raw, victim)
    stream.send(make(link))
    expect(await readStream(stream, '00')).toMatchObject({ indices: [], end: undefined, abort: undefined, cut: true })
    expect(await victim.until('envelope.refused')).toMatchObject({ code, from: 'hostile' })
    expect(runs.started).toBe(0)
    await asBefore(victim, raw, link)
  })

  const answered: [string, string, Draft][] = [
    ['another agent is meant', 'WRONG_RECIPIENT', { recipient: { agent_id: 'other' } }],
    ['another network', 'WRONG_NETWORK', { network: 'elsewhere' }],
    ['another life of the recipient', 'PEER_RESTARTED', { recipient_epoch: 5 }],
    ['it has expired', 'EXPIRED', { timestamp: Date.now() - 200_000, expires_at: Date.now() - 100_000 }],
    ['nobody offers that', 'CAPABILITY_NOT_FOUND', { target_capability: 'nothing' }],
    ['it does not stream', 'STREAM_UNSUPPORTED', { target_capability: 'echo' }],
    ['its input does not fit', 'VALIDATION_ERROR', { payload: { input: 'many' } }],
    ['it would wait for itself', 'CALL_CYCLE', { path: ['victim#tokens'] }],
  ]
  it.each(answered)('when %s, a signed end says so: %s', async (_, code, more) => {
    const world = scene()
    const { victim, raw, link, runs } = await attacked(world)
    const stream = await open(raw, victim)
    const crafted = streaming(link, 3, more)
    stream.send(crafted.frame)
    const { end, indices } = await readStream(stream, crafted.leaf)
    expect(end).toMatchObject({ status: 'failed', count: 0, error: { error_code: code } })
    expect(indices).toEqual([])
    expect(runs.started).toBe(0)
    await asBefore(victim, raw, link)
  })

  it('a second opening with the same id is STREAM_BROKEN, while the first runs and after it; it is not started again', async () => {
    const world = scene()
    const { victim, raw, link, runs } = await attacked(world)
    const crafted = streaming(link, 20)
    const again = async () => {
      const stream = await open(raw, victim)
      stream.send(crafted.frame)
      return readStream(stream, crafted.leaf)
    }
    const [first, second] = await Promise.all([again(), again()])
    const ends = [first, second].map(({ end }) => end?.status).sort()
    expect(ends).toEqual(['completed', 'failed'])
    expect((await again()).end).toMatchObject({
      status: 'failed',
      error: { error_code: 'STREAM_BROKEN', retryable: false },
    })
    expect(runs.started).toBe(1)
    await asBefore(victim, raw, link)
  })

  it('whose link has gone since the stream was opened is refused', async () => {
    const world = scene()
    const { victim, raw, link, runs } = await attacked(world)
    const stream = await open(raw, victim)
    const { frame } = streaming(link, 3)
    stream.send(frame.subarray(0, 50))
    link.stream.close()
    await victim.until('link.down')
    stream.send(frame.subarray(50))
    expect(await victim.until('stream.refused')).toMatchObject({ code: 'NOT_ALLOWED' })
    expect(runs.started).toBe(0)
    expect(world.escaped).toEqual([])
  })

  it('an opening that never comes gives its place back after its time', async () => {
    const world = scene()
    const { victim, raw, link } = await attacked(world, { tuning: { streamOpenMs: 300 } })
    const { frame } = streaming(link, 3)
    const stream = await open(raw, victim)
    stream.send(frame.subarray(0, 50))
    expect(await victim.until('stream.refused')).toMatchObject({ code: 'TIMEOUT' })
    await stream.untilEnded()
    await asBefore(victim, raw, link)
  })
})

describe('streams under attack: what follows the opening', () => {
  const wrong: [string, string, Uint8Array][] = [
    ['data where none is expected', 'MALFORMED', encodeData(1, Buffer.from('x'))],
    ['an end where none is expected', 'MALFORMED', encodeEnd(partOf(Buffer.from([0])))],
    ['an unknown kind', 'UNKNOWN_TAG', partOf(Buffer.from([9]))],
    ['a length over every limit', 'LIMIT_EXCEEDED', varint(2 ** 31)],
    ['a length over that of its kind', 'LIMIT_EXCEEDED', Buffer.concat([varint(64 * 1024 + 7), Buffer.from([0])])],
    ['a length of six bytes', 'LIMIT_EXCEEDED', Buffer.from('ffffffffff01', 'hex')],
    ['an empty chunk', 'MALFORMED', Buffer.from([0])],
  ]
  it.each(wrong)('%s ends the stream: %s, and the handler is told', async (_, code, bytes) => {
    const world = scene()
    const { victim, raw, link, runs } = await attacked(world)
    const held = heldSince()
    const crafted = streaming(link, 1e9)
    const stream = await open(raw, victim)
    stream.send(crafted.frame)
    stream.send(encodePause())
    stream.send(bytes)
    expect(await victim.until('stream.ended')).toMatchObject({ code })
    await eventually(() => runs.aborted.length === 1, 'the abort')
    expect(runs.aborted).toEqual(['CALLER_GONE'])
    expect(held(4 * MiB)).toBeLessThan(4 * MiB)
    stream.reset()
    await asBefore(victim, raw, link)
  })

  it.each([
    ['an abort', 'CANCELLED', (stream: RawStream) => stream.send(encodeAbort('CANCELLED'))],
    ['a reset', 'CALLER_GONE', (stream: RawStream) => stream.reset()],
    ['a close', 'CALLER_GONE', (stream: RawStream) => stream.close()],
  ] as const)('%s of the reader ends the handler: %s', async (_, code, leave) => {
    const world = scene()
    const { victim, raw, link, runs } = await attacked(world)
    const stream = await open(raw, victim)
    stream.send(streaming(link, 1e9).frame)
    await eventually(() => stream.waiting > 1000, 'chunks')
    leave(stream)
    await eventually(() => runs.aborted.length === 1, 'the abort')
    expect(runs.aborted).toEqual([code])
    await asBefore(victim, raw, link)
  })

  it('a flood of pause and resume is no work for the handler, and no memory', async () => {
    const world = scene()
    const { victim, raw, link } = await attacked(world)
    const held = heldSince()
    const crafted = streaming(link, 500)
    const stream = await open(raw, victim)
    stream.send(crafted.frame)
    const flood = Buffer.concat(Array.from({ length: 5000 }, () => [encodePause(), encodeResume()]).flat())
    for (let i = 0; i < 20; i++) stream.send(flood)
    expect(await readStream(stream, crafted.leaf)).toMatchObject({ end: { status: 'completed', count: 500 } })
    expect(held(8 * MiB)).toBeLessThan(8 * MiB)
    await asBefore(victim, raw, link)
  })

  it('F-22 a peer that opens streams without end is told BUSY, then cut short; others are served', async () => {
    const world = scene()
    const { victim, raw, link } = await attacked(world, { tuning: { streamsPerPeer: 4, streamOpenMs: 500 } })
    const streams: RawStream[] = []
    for (let i = 0; i < 40; i++) {
      const stream = await open(raw, victim).catch(() => undefined)
      if (stream) streams.push(stream)
    }
    await victim.until('stream.refused', ({ code }) => code === 'BUSY')
    const other = await world.raw(otherKey)
    const second = await dialLink(other, otherKey, victim.address)
    await asBefore(victim, other, second)
    for (const stream of streams) stream.reset()
    await eventually(() => victim.of('stream.refused').length >= 8, 'the end of what was opened')
    await asBefore(victim, raw, link)
  })
})
