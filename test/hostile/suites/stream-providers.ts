import {
  chunkChain,
  decodeFrame,
  decodeHeader,
  encodeAbort,
  encodeData,
  encodeEnd,
  type HermesError,
  leafOf,
} from '@hermes-peer/protocol'
import { capability } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Draft } from '../craft.ts'
import { craft } from '../craft.ts'
import { heldSince, MiB } from '../memory.ts'
import type { RawLink } from '../raw-link.ts'
import { partOf, type RawStream, varint } from '../raw-stream.ts'
import { scene } from '../scene.ts'
import { attacked, otherKey } from '../stream-tools.ts'

describe('streams under attack: a provider that lies', () => {
  const work = capability('work', {
    description: 'Works.',
    input: z.null(),
    output: z.any(),
    yields: z.number(),
    effects: 'none',
  })
  const once = capability('work', { description: 'Works.', input: z.null(), output: z.any(), yields: z.number() })

  /** The victim reads a stream that `answer` makes by hand. */
  async function asked(
    answer: (tools: {
      stream: RawStream
      link: RawLink
      leaf: string
      data(index: number, text: string): Uint8Array
    }) => void,
    contract: typeof work | typeof once = work,
  ) {
    const world = scene()
    const { victim, raw, link } = await attacked(world)
    await victim.peer.manifest('hostile')
    const reading = (async () => {
      const pieces: number[] = []
      try {
        for await (const piece of victim.peer.stream(contract as typeof work, null, { timeoutMs: 8000 }))
          pieces.push(piece)
        return { pieces, error: undefined }
      } catch (error) {
        return { pieces, error: error as HermesError }
      }
    })()
    const stream = await raw.accept()
    const frame = decodeFrame(await stream.part())
    if (frame.tag !== 0) throw new Error('another tag')
    const header = decodeHeader(frame.header)
    expect(header).toMatchObject({ call_type: 'stream', sequence: 0, recipient_epoch: link.epoch })
    const leaf = leafOf(frame.header)
    answer({ stream, link, leaf, data: (index, text) => encodeData(index, Buffer.from(text)) })
    return { ...(await reading), victim, raw, link, stream }
  }

  const ended = (link: RawLink, leaf: string, sent: readonly Uint8Array[], more: object = {}, draft: Draft = {}) => {
    const chain = chunkChain(leaf)
    for (const [at, chunk] of sent.entries()) chain.add(at + 1, chunk)
    return encodeEnd(
      craft(link, {
        message_type: 'end',
        in_reply_to: leaf,
        payload: { status: 'completed', count: chain.count, running_hash: chain.hash, output: 'all', ...more },
        ...draft,
      }).frame,
    )
  }

  it('is believed when it does not', async () => {
    const { pieces, error } = await asked(({ stream, link, leaf, data }) => {
      const sent = [data(1, '1'), data(2, '2')]
      for (const chunk of sent) stream.send(chunk)
      stream.send(ended(link, leaf, sent))
    })
    expect({ pieces, error }).toEqual({ pieces: [1, 2], error: undefined })
  })

  type Lie = Parameters<typeof asked>[0]
  const lies: [string, number[], Lie][] = [
    [
      'an orderly close after two pieces',
      [1, 2],
      ({ stream, data }) => {
        stream.send(data(1, '1'))
        stream.send(data(2, '2'))
        stream.close()
      },
    ],
    [
      'a reset after a piece',
      [1],
      ({ stream, data }) => {
        stream.send(data(1, '1'))
        setTimeout(() => stream.reset(), 200)
      },
    ],
    [
      'a missing piece',
      [1],
      ({ stream, data, link, leaf }) => {
        stream.send(data(1, '1'))
        stream.send(data(3, '3'))
        stream.send(ended(link, leaf, [data(1, '1'), data(2, '3')]))
      },
    ],
    [
      'a piece twice',
      [1],
      ({ stream, data }) => {
        stream.send(data(1, '1'))
        stream.send(data(1, '1'))
      },
    ],
    [
      'an end for one piece more',
      [1],
      ({ stream, data, link, leaf }) => {
        stream.send(data(1, '1'))
        stream.send(ended(link, leaf, [data(1, '1'), data(2, '2')]))
      },
    ],
    [
      'an end with another hash',
      [1],
      ({ stream, data, link, leaf }) => {
        stream.send(data(1, '1'))
        stream.send(ended(link, leaf, [data(1, '2')]))
      },
    ],
    [
      'an end for another stream',
      [1],
      ({ stream, data, link, leaf }) => {
        stream.send(data(1, '1'))
        stream.send(ended(link, leaf, [data(1, '1')], {}, { in_reply_to: 'c'.repeat(64) }))
      },
    ],
    [
      'a response for an end',
      [1],
      ({ stream, data, link, leaf }) => {
        stream.send(data(1, '1'))
        stream.send(ended(link, leaf, [data(1, '1')], {}, { message_type: 'response' }))
      },
    ],
    [
      'an end that another key signed',
      [1],
      ({ stream, data, link, leaf }) => {
        stream.send(data(1, '1'))
        stream.send(ended(link, leaf, [data(1, '1')], {}, { sign: (bytes) => otherKey.key.sign(bytes) }))
      },
    ],
    [
      'a lying length',
      [1],
      ({ stream, data }) => {
        stream.send(data(1, '1'))
        stream.send(Buffer.concat([varint(70_000), Buffer.from([0])]))
      },
    ],
    [
      'an abort',
      [1],
      ({ stream, data }) => {
        stream.send(data(1, '1'))
        stream.send(encodeAbort('BUSY'))
      },
    ],
    [
      'no data in the form of the content type',
      [1],
      ({ stream, data }) => {
        stream.send(data(1, '1'))
        stream.send(data(2, '{'))
      },
    ],
  ]
  it.each(lies)('%s is STREAM_BROKEN, never success, and nobody else is asked', async (_, came, lie) => {
    const { pieces, error, victim, stream } = await asked(lie)
    expect(pieces).toEqual(came)
    expect(error).toMatchObject({ code: 'STREAM_BROKEN', retryable: false })
    expect(victim.of('call.attempt')).toHaveLength(1)
    await stream.untilEnded()
    expect(victim.of('link.down')).toEqual([])
    expect(await victim.peer.balance()).toMatchObject({ succeeded: 0, failed: 1, inFlight: 0 })
  })

  it('a piece that the contract does not allow is INVALID_OUTPUT', async () => {
    const { pieces, error } = await asked(({ stream, data }) => {
      stream.send(data(1, '1'))
      stream.send(data(2, '"two"'))
    })
    expect({ pieces, code: error?.code }).toEqual({ pieces: [1], code: 'INVALID_OUTPUT' })
  })

  it('a code that promises that nothing was started is not believed once the stream lies: once stays once', async () => {
    const { pieces, error, victim } = await asked(({ stream }) => stream.send(partOf(Buffer.from([9]))), once)
    expect({ pieces, code: error?.code }).toEqual({ pieces: [], code: 'STREAM_BROKEN' })
    expect(victim.of('call.attempt')).toHaveLength(1)
  })

  it('a producer that does not listen to pause is aborted, and what it floods with is bounded', async () => {
    const held = heldSince()
    const world = scene()
    const { victim, raw, link } = await attacked(world, {})
    await victim.peer.manifest('hostile')
    const iterator = victim.peer.stream(work, null, { timeoutMs: 60_000 })[Symbol.asyncIterator]()
    const first = iterator.next()
    const stream = await raw.accept()
    await stream.part()
    const chunk = (index: number) => encodeData(index, Buffer.from(`${' '.repeat(60_000)}1`))
    stream.send(chunk(1))
    expect(await first).toEqual({ done: false, value: 1 })
    for (let index = 2; index < 400 && !stream.ended; index++) {
      stream.send(chunk(index))
      if (index % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    expect(await victim.until('stream.ended')).toMatchObject({ code: 'STREAM_BROKEN' })
    expect(victim.of('stream.flow')).toMatchObject([{ side: 'reader', paused: true }])
    await expect(iterator.next()).rejects.toMatchObject({ code: 'STREAM_BROKEN' })
    expect(held(24 * MiB)).toBeLessThan(24 * MiB)
    expect(await link.answerTo(link.request('echo', 1))).toMatchObject({ payload: { output: 1 } })
  })
})
