import { randomBytes } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { createLibp2pNetwork, type Libp2pNetworkOptions } from '../../src/network/libp2p/index.ts'
import type { Channel, Network } from '../../src/network/network.ts'

export const PROTOCOL = '/hermes/test/1.0.0'
export const NETWORK = 'test'
const BARRIER = '/hermes/barrier/1.0.0'

/** A network with a fresh key, stopped when the test ends. Dials may take longer than by default: other tests run beside this one. */
export function network(options: Partial<Libp2pNetworkOptions> = {}): Network {
  const created = createLibp2pNetwork({
    privateKey: randomBytes(32),
    networkName: NETWORK,
    dialTimeoutMs: 20_000,
    ...options,
  })
  created.handle(BARRIER, (channel) => channel.listen({ data: () => {}, drained: () => {}, closed: () => {} }))
  onTestFinished(() => created.stop())
  return created
}

export async function started(options: Partial<Libp2pNetworkOptions> = {}): Promise<Network> {
  const created = network(options)
  await created.start()
  return created
}

/** A signal that ends a hanging test with a clear reason. */
export const soon = (ms = 20_000): AbortSignal => AbortSignal.timeout(ms)

export function open(from: Network, to: Network, protocol = PROTOCOL, signal = soon()): Promise<Channel> {
  return from.open({ peerId: to.peerId, addresses: to.addresses() }, protocol, { signal })
}

/**
 * Resolves when everything that both sides have written before has arrived: a channel is opened by an answer on the
 * same connection, which keeps the order.
 */
export async function arrived(from: Network, to: Network): Promise<void> {
  const channel = await open(from, to, BARRIER)
  channel.abort(new Error('served its purpose'))
}

/** What a channel's listener was told, in order. */
export interface Record {
  readonly chunks: Uint8Array[]
  bytes: number
  drained: number
  readonly closed: (Error | undefined)[]
}

export function record(channel: Channel, onData: (bytes: Uint8Array) => void = () => {}): Record {
  const told: Record = { chunks: [], bytes: 0, drained: 0, closed: [] }
  channel.listen({
    data: (bytes) => {
      told.chunks.push(bytes)
      told.bytes += bytes.length
      onData(bytes)
    },
    drained: () => {
      told.drained += 1
    },
    closed: (error) => {
      told.closed.push(error)
    },
  })
  return told
}

/** Serves a protocol that sends everything back, holding back when told to. */
export function serveEcho(on: Network, protocol = PROTOCOL): void {
  on.handle(protocol, (channel) => {
    channel.listen({
      data: (bytes) => {
        if (!channel.send(bytes)) channel.pause()
      },
      drained: () => channel.resume(),
      closed: () => {},
    })
  })
}

/** A plain TCP server on loopback; `address` is its multiaddr. Closed when the test ends. */
export async function tcpServer(onSocket: (socket: Socket) => void): Promise<{ server: Server; address: string }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    onSocket(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('not a TCP server')
  return { server, address: `/ip4/127.0.0.1/tcp/${bound.port}` }
}

/** An address on loopback where nothing listens. */
export async function deadAddress(): Promise<string> {
  const { server, address } = await tcpServer(() => {})
  await new Promise((resolve) => server.close(resolve))
  return address
}
