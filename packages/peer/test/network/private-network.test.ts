import { randomBytes } from 'node:crypto'
import { createConnection, type Socket } from 'node:net'
import type { HermesError } from '@hermes-peer/protocol'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Network } from '../../src/network/network.ts'
import { until } from '../waiting.ts'
import { network, open, PROTOCOL, record, serveEcho, started, tcpServer } from './support.ts'

const key = randomBytes(32)

/** Passes bytes on to a network, keeping a copy of all that went by in both directions. */
async function tapped(network: Network): Promise<{ address: string; seen: Buffer[] }> {
  const seen: Buffer[] = []
  const [, , , , port] = (network.addresses()[0] as string).split('/')
  const { address } = await tcpServer((near) => {
    const far = createConnection(Number(port), '127.0.0.1')
    const pass = (from: Socket, to: Socket) => {
      from.on('error', () => to.destroy()).on('close', () => to.destroy())
      from.on('data', (bytes: Buffer) => {
        seen.push(bytes)
        to.write(bytes)
      })
    }
    pass(near, far)
    pass(far, near)
    onTestFinished(() => void far.destroy())
  })
  return { address, seen }
}

async function refusal(from: Network, to: Network, address = to.addresses()[0] as string): Promise<HermesError> {
  const target = { peerId: to.peerId, addresses: [address] }
  return from.open(target, PROTOCOL, { signal: AbortSignal.timeout(20_000) }).then(
    () => Promise.reject(new Error('it was connected to')),
    (error: HermesError) => error,
  )
}

describe('a private network', () => {
  it('connects peers with the same key, and large answers come whole', async () => {
    const [a, b] = await Promise.all([started({ preSharedKey: key }), started({ preSharedKey: key })])
    serveEcho(b)
    const told = record(await open(a, b))
    const channel = await open(a, b)
    const echoed = record(channel)
    const sent = randomBytes(300_000)
    channel.send(sent)
    await until(() => echoed.bytes === sent.length, 'the echo')
    expect(Buffer.concat(echoed.chunks).equals(sent)).toBe(true)
    expect(told.closed).toEqual([])
  })

  it('shows nothing on the wire, not even that it is libp2p', async () => {
    const [a, b, plain] = await Promise.all([started({ preSharedKey: key }), started({ preSharedKey: key }), started()])
    for (const network of [b, plain]) serveEcho(network)
    const talk = async (from: Network, to: Network) => {
      const { address, seen } = await tapped(to)
      const target = { peerId: to.peerId, addresses: [address] }
      const channel = await from.open(target, PROTOCOL, { signal: AbortSignal.timeout(20_000) })
      const told = record(channel)
      channel.send(Buffer.from('机密'))
      await until(() => told.bytes === 6, 'the echo')
      return Buffer.concat(seen).toString('latin1')
    }
    // The same tap does see it where there is no key.
    expect(await talk(await started(), plain)).toMatch(/multistream[\s\S]*noise/)
    expect(await talk(a, b)).not.toMatch(/multistream|noise|yamux|12D3KooW/)
  })

  it.each([
    ['none', undefined],
    ['another', randomBytes(32)],
  ])('refuses a peer with %s key, in both directions, and goes on serving', async (_, other) => {
    const inside = await started({ preSharedKey: key, dialTimeoutMs: 800 })
    const stranger = await started({ dialTimeoutMs: 800, ...(other ? { preSharedKey: other } : {}) })
    const connected = vi.fn()
    inside.observe({ connected })
    stranger.observe({ connected })
    serveEcho(inside)
    serveEcho(stranger)
    const errors = await Promise.all([refusal(inside, stranger), refusal(stranger, inside)])
    for (const error of errors) expect(error.code).toBe('PEER_UNREACHABLE')
    // Each side that has a key says what may be wrong with it.
    expect(errors[0]?.message).toMatch(/another pre-shared key, or none/)
    if (other) expect(errors[1]?.message).toMatch(/another pre-shared key, or none/)
    expect(connected).not.toHaveBeenCalled()
    const friend = await started({ preSharedKey: key })
    expect((await open(friend, inside)).remotePeer).toBe(inside.peerId)
  })

  it('does not blame the key where nothing listens, or another peer answers', async () => {
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => started({ preSharedKey: key, dialTimeoutMs: 5000 })))
    if (!a || !b || !c) throw new Error('three were started')
    const address = b.addresses()[0]?.split('/p2p/')[0] as string
    expect((await refusal(a, c, address)).message).toMatch(/: wrong peer$/)
    await b.stop()
    expect((await refusal(a, c, address)).message).toMatch(/: refused$/)
  })

  it('names a key of the wrong length', () => {
    expect(() => network({ preSharedKey: randomBytes(31) })).toThrow(/^preSharedKey: .*32 bytes/)
  })
})
