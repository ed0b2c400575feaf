import { createConnection } from 'node:net'
import { HermesError } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import type { Channel, DialTarget, Network } from '../../src/network/network.ts'
import { until } from '../waiting.ts'
import { deadAddress, network, open, PROTOCOL, record, serveEcho, soon, started, tcpServer } from './support.ts'

interface Failure {
  code: string
  message: string
  tried: { address: string; reason: string }[]
}

/** How an `open` that must not succeed has failed. */
async function failure(from: Network, target: DialTarget, protocol = PROTOCOL, signal = soon()): Promise<Failure> {
  const error: unknown = await from.open(target, protocol, { signal }).then(
    () => new Error('it was opened'),
    (reason) => reason,
  )
  if (!(error instanceof HermesError)) throw error
  return { code: error.code, message: error.message, tried: error.details.tried as Failure['tried'] }
}

const unknownPeer = () => network().peerId

describe('open', () => {
  it('reuses the connection there is, and needs no address then', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const connected: string[] = []
    b.observe({ connected: (peerId) => connected.push(peerId) })
    await open(a, b)
    const again = await a.open({ peerId: b.peerId, addresses: [] }, PROTOCOL, { signal: soon() })
    const back = await failure(b, { peerId: a.peerId, addresses: [] })
    expect(again.remotePeer).toBe(b.peerId)
    expect(back).toMatchObject({ code: 'PEER_UNREACHABLE', tried: [{ reason: 'unsupported' }] })
    expect(connected).toEqual([a.peerId])
  })

  it('makes one connection of many opens at the same time', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const port = Number(b.addresses()[0]?.split('/')[4])
    let accepted = 0
    const { address } = await tcpServer((socket) => {
      accepted += 1
      const onward = createConnection(port, '127.0.0.1').on('error', () => {})
      socket.pipe(onward).pipe(socket)
    })
    const target = { peerId: b.peerId, addresses: [address] }
    await Promise.all(Array.from({ length: 8 }, () => a.open(target, PROTOCOL, { signal: soon() })))
    expect(accepted).toBe(1)
  })

  it('works from both sides at the same time', async () => {
    const [a, b] = await Promise.all([started(), started()])
    const told: string[] = []
    for (const node of [a, b]) {
      serveEcho(node)
      node.observe({ connected: (peer) => told.push(`+${peer}`), disconnected: (peer) => told.push(`-${peer}`) })
    }
    const channels = await Promise.all([open(a, b), open(b, a)])
    for (const channel of channels) {
      const answer = record(channel)
      channel.send(Buffer.from('hello'))
      await until(() => answer.bytes === 5, 'the echo')
    }
    expect(told.sort()).toEqual([`+${a.peerId}`, `+${b.peerId}`].sort())
  })

  it('takes whoever answers when no peer is named', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const bare = (b.addresses()[0] as string).replace(/\/p2p\/.*/, '')
    const channel = await a.open({ addresses: [bare] }, PROTOCOL, { signal: soon() })
    expect(channel.remotePeer).toBe(b.peerId)
    expect(channel.remoteAddress).toBe(b.addresses()[0])
  })

  it('names the peer itself where addresses leave it out', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const bare = (b.addresses()[0] as string).replace(/\/p2p\/.*/, '')
    const channel = await a.open({ peerId: b.peerId, addresses: [bare] }, PROTOCOL, { signal: soon() })
    expect(channel.remotePeer).toBe(b.peerId)
  })

  it('keeps its connection when the signal of the dial ends later', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const controller = new AbortController()
    const channel = await open(a, b, PROTOCOL, controller.signal)
    const answer = record(channel)
    controller.abort()
    channel.send(Buffer.from('alive'))
    await until(() => answer.bytes === 5 || answer.closed.length > 0, 'the echo')
    expect(answer.closed).toEqual([])
  })

  it('says refused where nothing listens', async () => {
    const [a, address] = [await started(), await deadAddress()]
    const peerId = unknownPeer()
    const told = await failure(a, { peerId, addresses: [address] })
    expect(told).toMatchObject({
      code: 'PEER_UNREACHABLE',
      tried: [{ address: `${address}/p2p/${peerId}`, reason: 'refused' }],
    })
    expect(told.message).toContain(`${address}/p2p/${peerId}: refused`)
  })

  it('says wrong peer when another key answers, and never opens to it', async () => {
    const [a, b] = await Promise.all([started(), started()])
    const bare = (b.addresses()[0] as string).replace(/\/p2p\/.*/, '')
    const connected: string[] = []
    a.observe({ connected: (peerId) => connected.push(peerId) })
    const told = await failure(a, { peerId: unknownPeer(), addresses: [bare, b.addresses()[0] as string] })
    expect(told.tried.map(({ reason }) => reason)).toEqual(['wrong peer', 'wrong peer'])
    expect(connected).toEqual([])
  })

  it('says timeout when the other end keeps silent, within the dial timeout', async () => {
    const { address } = await tcpServer(() => {})
    const a = await started({ dialTimeoutMs: 300 })
    const before = performance.now()
    const told = await failure(a, { peerId: unknownPeer(), addresses: [address] })
    expect(told).toMatchObject({ code: 'PEER_UNREACHABLE', tried: [{ reason: 'timeout' }] })
    expect(performance.now() - before).toBeLessThan(5000)
  })

  it('says denied when something answers and closes at once', async () => {
    const { address } = await tcpServer((socket) => socket.destroy())
    const told = await failure(await started(), { peerId: unknownPeer(), addresses: [address] })
    expect(told).toMatchObject({ code: 'PEER_UNREACHABLE', tried: [{ reason: 'denied' }] })
  })

  it('says denied when the other peer is full', async () => {
    const [b, first, second] = [await started({ limits: { maxConnections: 1 } }), await started(), await started()]
    serveEcho(b)
    await open(first, b)
    const told = await failure(second, { peerId: b.peerId, addresses: b.addresses() })
    expect(told).toMatchObject({ code: 'PEER_UNREACHABLE', tried: [{ reason: 'denied' }] })
  })

  it('takes only so many callers that have not proven who they are', async () => {
    const b = await started({ limits: { pendingHandshakes: 2 } })
    serveEcho(b)
    const port = Number(b.addresses()[0]?.split('/')[4])
    const silent = [1, 2].map(() => createConnection(port, '127.0.0.1').on('error', () => {}))
    // They are served in the order in which they came.
    await Promise.all(silent.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    const a = await started()
    expect((await failure(a, { peerId: b.peerId, addresses: b.addresses() })).tried[0]?.reason).toBe('denied')
    for (const socket of silent) socket.destroy()
    await expect
      .poll(() =>
        open(a, b).then(
          () => 'open',
          () => 'denied',
        ),
      )
      .toBe('open')
  })

  it('takes only so many connections a second from one address where that is set', async () => {
    const b = await started({ limits: { perAddressLimit: 1 } })
    serveEcho(b)
    const callers = await Promise.all(Array.from({ length: 8 }, () => started()))
    const outcomes = await Promise.allSettled(callers.map((caller) => open(caller, b)))
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['fulfilled', 'rejected']))
  })

  it('says unsupported for a transport that is not there and a protocol that is not served', async () => {
    const [a, b] = await Promise.all([started(), started()])
    const quic = '/ip4/127.0.0.1/udp/4001/quic-v1'
    expect((await failure(a, { peerId: b.peerId, addresses: [quic] })).tried[0]?.reason).toBe('unsupported')
    expect(
      (await failure(a, { peerId: b.peerId, addresses: b.addresses() }, '/hermes/none/1.0.0')).tried[0]?.reason,
    ).toBe('unsupported')
  })

  it('reaches the good address behind a dead, a silent and a broken one', async () => {
    const [a, b, dead] = [await started(), await started(), await deadAddress()]
    const events: string[] = []
    const silent = await tcpServer((socket) => {
      events.push('accepted')
      socket.on('close', () => events.push('closed')).resume()
    })
    serveEcho(b)
    const channel = await a.open(
      { peerId: b.peerId, addresses: ['not an address', dead, silent.address, ...b.addresses()] },
      PROTOCOL,
      { signal: soon() },
    )
    const answer = record(channel)
    channel.send(Buffer.from('hello'))
    await until(() => answer.bytes === 5, 'the echo')
    await until(() => events.length === 2, 'the silent one to be let go')
    expect(events).toEqual(['accepted', 'closed'])
  })

  it('refuses what is no address, naming it', async () => {
    const a = await started()
    for (const [addresses, text] of [
      [['127.0.0.1:4001'], '127.0.0.1:4001'],
      [['/ip4/999.0.0.1/tcp/1'], '999.0.0.1'],
      [[''], '""'],
    ] as const) {
      const told = await failure(a, { addresses })
      expect(told.code).toBe('INVALID_ADDRESS')
      expect(told.message).toContain(text)
    }
    expect(await failure(a, { peerId: 'nobody', addresses: [] })).toMatchObject({ code: 'INVALID_ADDRESS' })
  })

  it('F-29 an address that leads back to oneself is told as that of a wrong peer, and the good one behind it is reached', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    // Two containers that both announce 127.0.0.1 and the same port.
    const own = (a.addresses()[0] as string).replace(/\/p2p\/.*/, '')
    const error = await a
      .open({ peerId: b.peerId, addresses: [own] }, PROTOCOL, { signal: soon() })
      .catch((reason) => reason)
    expect(error).toMatchObject({ code: 'PEER_UNREACHABLE', details: { tried: [{ reason: 'wrong peer' }] } })
    const channel = await a.open({ peerId: b.peerId, addresses: [own, ...b.addresses()] }, PROTOCOL, { signal: soon() })
    expect(channel.remotePeer).toBe(b.peerId)
  })

  it('does not dial itself, and knows when there is nothing to dial', async () => {
    const a = await started()
    expect((await failure(a, { peerId: a.peerId, addresses: a.addresses() })).tried[0]?.reason).toBe('this peer itself')
    expect((await failure(a, { addresses: [(a.addresses()[0] as string).replace(/\/p2p\/.*/, '')] })).code).toBe(
      'PEER_UNREACHABLE',
    )
    expect((await failure(a, { peerId: unknownPeer(), addresses: [] })).message).toContain('no address of it is known')
    expect((await failure(a, { addresses: [] })).code).toBe('PEER_UNREACHABLE')
  })

  it("ends with the signal's reason", async () => {
    const { address } = await tcpServer(() => {})
    const a = await started()
    const controller = new AbortController()
    const reason = new Error('the call is over')
    const opening = a.open({ peerId: unknownPeer(), addresses: [address] }, PROTOCOL, { signal: controller.signal })
    controller.abort(reason)
    await expect(opening).rejects.toBe(reason)
    await expect(a.open({ addresses: [address] }, PROTOCOL, { signal: controller.signal })).rejects.toBe(reason)
  })

  it('ends when the network stops', async () => {
    const { address } = await tcpServer(() => {})
    const a = await started()
    const opening = failure(a, { peerId: unknownPeer(), addresses: [address] })
    await a.stop()
    expect((await opening).code).toBe('PEER_UNREACHABLE')
  })

  it('holds at most the set number of channels of one connection, and the rest are told', async () => {
    const [a, b] = await Promise.all([started(), started({ limits: { inboundChannels: { [PROTOCOL]: 2 } } })])
    const served: Channel[] = []
    b.handle(PROTOCOL, (channel) => {
      served.push(channel)
      channel.listen({ data: () => {}, drained: () => {}, closed: () => {} })
    })
    const told = [record(await open(a, b)), record(await open(a, b))]
    // The other side takes the stream before it counts, so it is reset a moment after it was opened, or while it is.
    const third = await open(a, b).then(record, (error: HermesError) => error)
    if (third instanceof HermesError) expect(third.code).toBe('PEER_UNREACHABLE')
    else await until(() => third.closed[0] instanceof Error, 'the reset')
    expect(served).toHaveLength(2)
    expect(told.map(({ closed }) => closed)).toEqual([[], []])
  })
})
