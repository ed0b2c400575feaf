import { randomBytes } from 'node:crypto'
import { type Connection, type Stream, StreamAbortEvent, StreamMessageEvent } from '@libp2p/interface'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createChannel } from '../../src/network/libp2p/channel.ts'
import type { Channel, Network } from '../../src/network/network.ts'
import { until } from '../waiting.ts'
import { arrived, open, PROTOCOL, type Record, record, serveEcho, started } from './support.ts'

const MiB = 1024 * 1024

/** As much of a libp2p stream as a channel uses, for orders of events that this machine's own yamux does not make. */
class FakeStream extends EventTarget {
  status = 'open'
  direction = 'inbound'
  remoteWriteStatus = 'writable'
  readBufferLength = 0
  close(): Promise<void> {
    return Promise.resolve()
  }
  abort(error: Error): void {
    this.status = 'aborted'
    this.dispatchEvent(new StreamAbortEvent(error))
  }
}

const fakeConnection = { remotePeer: 'peer', remoteAddr: '/ip4/127.0.0.1/tcp/1' } as unknown as Connection

interface Pair {
  a: Network
  b: Network
  near: Channel
  far: Channel
  nearTold: Record
  farTold: Record
}

/** Two connected networks and both ends of one channel, with what each end was told. */
async function pair(): Promise<Pair> {
  const [a, b] = await Promise.all([started(), started()])
  let far: Channel | undefined
  let farTold: Record | undefined
  b.handle(PROTOCOL, (channel) => {
    far = channel
    farTold = record(channel)
  })
  const near = await open(a, b)
  const nearTold = record(near)
  await until(() => farTold !== undefined, 'the far end')
  return { a, b, near, far: far as Channel, nearTold, farTold: farTold as Record }
}

describe('a channel', () => {
  it('carries 1 MiB there and back in order, holding back when told to', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const channel = await open(a, b)
    const told = record(channel)
    const sent = randomBytes(MiB)
    let refused = 0
    for (let at = 0; at < sent.length; at += 64 * 1024) {
      if (channel.send(sent.subarray(at, at + 64 * 1024))) continue
      refused += 1
      const before = told.drained
      await until(() => told.drained > before, 'drained')
    }
    await until(() => told.bytes === MiB, 'the whole echo')
    expect(refused).toBeGreaterThan(0)
    expect(Buffer.concat(told.chunks).equals(sent)).toBe(true)
    expect(channel.direction).toBe('outbound')
    expect(channel.remotePeer).toBe(b.peerId)
    expect(b.addresses()).toContain(channel.remoteAddress)
  })

  it('stops the other side when paused, and loses nothing', async () => {
    const { near, far, nearTold, farTold } = await pair()
    near.pause()
    const sent = randomBytes(8 * MiB)
    let at = 0
    const sendOn = () => {
      let more = true
      while (more && at < sent.length) {
        more = far.send(sent.subarray(at, at + 64 * 1024))
        at += 64 * 1024
      }
    }
    sendOn()
    let drained = 0
    // Until the writer has been held back for a while: the kernel's buffers drain, one window of 256 KiB does not.
    for (let quiet = 0; quiet < 10; quiet += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      if (farTold.drained === drained) continue
      drained = farTold.drained
      quiet = 0
      sendOn()
    }
    expect(at).toBeLessThan(MiB)
    expect(nearTold.bytes).toBe(0)
    near.resume()
    while (at < sent.length) {
      await until(() => farTold.drained > drained, 'drained after resume')
      drained = farTold.drained
      sendOn()
    }
    await until(() => nearTold.bytes === sent.length, 'everything after resume')
    expect(Buffer.concat(nearTold.chunks).equals(sent)).toBe(true)
  })

  it('delivers bytes that came before listen', async () => {
    const [a, b] = await Promise.all([started(), started()])
    b.handle(PROTOCOL, (channel) => {
      channel.listen({ data: () => {}, drained: () => {}, closed: () => {} })
      channel.send(Buffer.from('early'))
      void channel.close()
    })
    const channel = await open(a, b)
    await arrived(a, b)
    const told = record(channel)
    await until(() => told.closed.length > 0, 'the end', 4000)
    expect(Buffer.concat(told.chunks).toString()).toBe('early')
    expect(told.closed).toEqual([undefined])
  })

  it('ends in order on both sides after close, with everything flushed', async () => {
    const { near, nearTold, farTold } = await pair()
    const bytes = randomBytes(MiB)
    near.send(bytes)
    await near.close()
    await until(() => farTold.closed.length > 0 && nearTold.closed.length > 0, 'the end on both sides')
    expect(Buffer.concat(farTold.chunks).equals(bytes)).toBe(true)
    expect(farTold.closed).toEqual([undefined])
    expect(nearTold.closed).toEqual([undefined])
    expect(near.send(bytes)).toBe(false)
    await near.close()
    near.abort(new Error('late'))
    near.pause()
    near.resume()
    expect(nearTold.closed).toHaveLength(1)
  })

  it('delivers what waits behind a pause before it tells of the end', async () => {
    const { a, b, near, far, nearTold } = await pair()
    near.pause()
    far.send(Buffer.from('last words'))
    await far.close()
    await arrived(a, b)
    expect(nearTold.closed).toEqual([])
    near.resume()
    await until(() => nearTold.closed.length > 0, 'the end', 4000)
    expect(Buffer.concat(nearTold.chunks).toString()).toBe('last words')
    expect(nearTold.closed).toEqual([undefined])
  })

  it('delivers bytes that come in the very frame that ends the stream', () => {
    const stream = new FakeStream()
    const told = record(createChannel(stream as unknown as Stream, fakeConnection))
    stream.remoteWriteStatus = 'closed'
    stream.dispatchEvent(new Event('remoteCloseWrite'))
    stream.dispatchEvent(new StreamMessageEvent(Buffer.from('last words')))
    expect(told.closed).toEqual([undefined])
    expect(Buffer.concat(told.chunks).toString()).toBe('last words')
  })

  it('is reset when the other side does not end its half in time', () => {
    vi.useFakeTimers()
    onTestFinished(() => {
      vi.useRealTimers()
    })
    const stream = new FakeStream()
    const channel = createChannel(stream as unknown as Stream, fakeConnection)
    const told = record(channel)
    void channel.close()
    vi.advanceTimersByTime(4999)
    expect(told.closed).toEqual([])
    vi.advanceTimersByTime(1)
    expect(told.closed).toEqual([expect.objectContaining({ message: expect.stringContaining('5000 ms') })])
    expect(stream.status).toBe('aborted')
  })

  it('tells both sides of an abort with an error, once', async () => {
    const { near, nearTold, farTold } = await pair()
    const reason = new Error('enough')
    near.abort(reason)
    expect(nearTold.closed).toEqual([reason])
    await until(() => farTold.closed.length > 0, 'the reset at the far end')
    expect(farTold.closed).toHaveLength(1)
    expect(farTold.closed[0]).toBeInstanceOf(Error)
    near.abort(new Error('again'))
    expect(nearTold.closed).toHaveLength(1)
    expect(near.send(Buffer.from('x'))).toBe(false)
  })

  it('tells of a connection that is gone without an end as an error', async () => {
    const [a, b] = await Promise.all([started(), started()])
    const far: Record[] = []
    b.handle(PROTOCOL, (channel) => far.push(record(channel)))
    const told = record(await open(a, b))
    await until(() => far.length === 1, 'the far end')
    await b.hangUp(a.peerId)
    await until(() => told.closed.length > 0 && far[0]?.closed.length === 1, 'the loss')
    expect(told.closed).toHaveLength(1)
    expect(told.closed[0]).toBeInstanceOf(Error)
    expect(far[0]?.closed[0]).toBeInstanceOf(Error)
  })

  it('resets the stream of a listener that throws, and nothing else', async () => {
    const [a, b] = await Promise.all([started(), started()])
    b.handle(PROTOCOL, (channel) =>
      channel.listen({
        data: () => {
          throw new Error('mistake of a handler')
        },
        drained: () => {},
        closed: () => {
          throw new Error('and another one')
        },
      }),
    )
    serveEcho(b, '/hermes/echo/1.0.0')
    const broken = await open(a, b)
    const told = record(broken)
    broken.send(Buffer.from('x'))
    await until(() => told.closed.length === 1, 'the reset')
    expect(told.closed[0]).toBeInstanceOf(Error)
    const echo = await open(a, b, '/hermes/echo/1.0.0')
    const answer = record(echo)
    echo.send(Buffer.from('still here'))
    await until(() => answer.bytes === 10, 'the echo')
  })

  it('is reset when the handler throws before it listens', async () => {
    const [a, b] = await Promise.all([started(), started()])
    b.handle(PROTOCOL, () => {
      throw new Error('no')
    })
    const outcome = await open(a, b).then(
      (channel) => record(channel),
      (error: Error) => error,
    )
    if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'PEER_UNREACHABLE' })
    else await until(() => outcome.closed[0] instanceof Error, 'the reset')
  })
})
