import { randomBytes } from 'node:crypto'
import { noise } from '@chainsafe/libp2p-noise'
import { yamux } from '@chainsafe/libp2p-yamux'
import type { Connection, Stream } from '@libp2p/interface'
import { tcp } from '@libp2p/tcp'
import { multiaddr } from '@multiformats/multiaddr'
import { createLibp2p } from 'libp2p'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Network } from '../../src/network/network.ts'
import { until } from '../waiting.ts'
import { open, PROTOCOL, record, serveEcho, started, tcpServer } from './support.ts'

const ROUNDS = 40

/** A peer that speaks raw streams to a network, and what escaped in this process meanwhile. */
async function attacker(target: Network): Promise<{ connection: Connection; escaped: unknown[] }> {
  const escaped: unknown[] = []
  const onEscape = (reason: unknown) => escaped.push(reason)
  process.on('unhandledRejection', onEscape).on('uncaughtException', onEscape)
  const libp2p = await createLibp2p({
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionMonitor: { enabled: false },
  })
  onTestFinished(async () => {
    await libp2p.stop()
    process.off('unhandledRejection', onEscape).off('uncaughtException', onEscape)
  })
  return { connection: await libp2p.dial(multiaddr(target.addresses()[0] as string)), escaped }
}

/** F-23: a remote that resets at the right moment must not end the process. */
describe('a hostile peer cannot take the process along', () => {
  const attacks: Record<string, (stream: Stream) => void | Promise<void>> = {
    'open and reset': (stream) => stream.abort(new Error('reset')),
    'open and close without data': (stream) => stream.close(),
    'half a message, then reset': (stream) => {
      stream.send(randomBytes(100))
      stream.abort(new Error('reset'))
    },
    'data, then reset before the answer is written': async (stream) => {
      stream.send(randomBytes(1000))
      await new Promise((resolve) => setImmediate(resolve))
      stream.abort(new Error('reset'))
    },
    'reset while the answer is written': async (stream) => {
      stream.pause()
      stream.send(randomBytes(200_000))
      await new Promise((resolve) => setImmediate(resolve))
      stream.abort(new Error('reset'))
    },
    'close at once after data': (stream) => {
      stream.send(randomBytes(1000))
      return stream.close()
    },
  }

  it.each(Object.keys(attacks))('by: %s', async (name) => {
    const [target, honest] = await Promise.all([started(), started()])
    let [opened, closed] = [0, 0]
    target.handle(PROTOCOL, (channel) => {
      opened += 1
      channel.listen({
        data: (bytes) => {
          if (!channel.send(bytes)) channel.pause()
        },
        drained: () => channel.resume(),
        closed: () => {
          closed += 1
        },
      })
    })
    const { connection, escaped } = await attacker(target)
    for (let round = 0; round < ROUNDS; round += 1) {
      try {
        const stream = await connection.newStream(PROTOCOL)
        await attacks[name]?.(stream)
      } catch {
        // The target may have reset first.
      }
    }
    await until(() => closed === opened && connection.streams.length === 0, 'every channel to end')
    expect(opened).toBeGreaterThan(0)
    const channel = await open(honest, target)
    const answer = record(channel)
    channel.send(Buffer.from('served'))
    await until(() => answer.bytes === 6, 'the echo')
    await honest.stop()
    await target.stop()
    expect(closed).toBe(opened)
    expect(escaped).toEqual([])
  })

  it('by garbage instead of a handshake, or none at all', async () => {
    const target = await started()
    serveEcho(target)
    const { escaped } = await attacker(target)
    const [, , , , port] = (target.addresses()[0] as string).split('/')
    const { createConnection } = await import('node:net')
    const sockets = Array.from({ length: 40 }, (_, index) => {
      const socket = createConnection(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      // The others say nothing at all, for as long as they are let.
      if (index % 4 === 0) socket.write(randomBytes(500))
      if (index % 8 === 0) socket.end()
      return socket
    })
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    const honest = await started()
    const channel = await open(honest, target)
    expect(channel.remotePeer).toBe(target.peerId)
    for (const socket of sockets) socket.destroy()
    expect(escaped).toEqual([])
  })

  it('by answering a dial with garbage', async () => {
    const a = await started({ dialTimeoutMs: 1000 })
    const { escaped } = await attacker(a)
    const { address } = await tcpServer((socket) => socket.write(randomBytes(500)))
    const opening = a.open({ addresses: [address] }, PROTOCOL, { signal: AbortSignal.timeout(3000) })
    await expect(opening).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    expect(escaped).toEqual([])
  })
})
