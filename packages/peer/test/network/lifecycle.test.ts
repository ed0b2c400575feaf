import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createLibp2pNetwork } from '../../src/network/libp2p/index.ts'
import { until } from '../waiting.ts'
import { network, open, PROTOCOL, serveEcho, soon, started } from './support.ts'

/** How many of each kind of handle or timer would keep the process alive. */
function resources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

const more = (than: Record<string, number>): string[] =>
  Object.entries(resources()).flatMap(([kind, count]) => (count > (than[kind] ?? 0) ? [`${kind}: ${count}`] : []))

describe('a network', () => {
  // The first, so that nothing of another test is counted as there before.
  it('leaves no handle, timer or listener behind after 20 lives', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    const life = async () => {
      const [a, b] = [network(), network()]
      serveEcho(b)
      a.subscribe('hermes/test/t', () => 'accept')
      await Promise.all([a.start(), b.start()])
      await open(a, b)
      await a.provide(Buffer.from(`01551220${'00'.repeat(32)}`, 'hex'), { signal: AbortSignal.timeout(1) })
      await Promise.all([a.stop(), b.stop()])
    }
    const before = resources()
    await life()
    const left = await started()
    expect(more(before)).not.toEqual([])
    await left.stop()
    for (let count = 0; count < 19; count += 1) await life()
    await until(() => more(before).length === 0, 'everything let go', 700)
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })

  it('derives the peer id from the seed, before it is started', () => {
    const privateKey = new Uint8Array(32).fill(7)
    const [one, two] = [network({ privateKey }), network({ privateKey })]
    expect(one.peerId).toBe(two.peerId)
    expect(one.peerId).toMatch(/^12D3KooW/)
    expect(one.addresses()).toEqual([])
  })

  it('listens on a free port and tells addresses that end in its peer id', async () => {
    const a = await started()
    expect(a.addresses()).toHaveLength(1)
    expect(a.addresses()[0]).toMatch(new RegExp(`^/ip4/127\\.0\\.0\\.1/tcp/\\d+/p2p/${a.peerId}$`))
    await a.stop()
    expect(a.addresses()).toEqual([])
  })

  it('tells what it was given to announce instead', async () => {
    const a = await started({ announce: ['/dns4/agent.example.org/tcp/4001'] })
    expect(a.addresses()).toEqual([`/dns4/agent.example.org/tcp/4001/p2p/${a.peerId}`])
  })

  it('listens on IPv6 loopback too', async () => {
    const [a, b] = await Promise.all([started({ listen: ['/ip6/::1/tcp/0'] }), started()])
    serveEcho(a)
    expect((await open(b, a)).remoteAddress).toMatch(/^\/ip6\/::1\/tcp\//)
  })

  it('starts once, and stops as often as asked', async () => {
    const a = network()
    await Promise.all([a.start(), a.start()])
    const [address] = a.addresses()
    await a.start()
    expect(a.addresses()).toEqual([address])
    await Promise.all([a.stop(), a.stop()])
    await a.stop()
  })

  it('serves what was set while it started', async () => {
    const [a, b] = [network(), network()]
    const starting = Promise.all([a.start(), b.start()])
    // At every point in the middle, each time under a name of its own: most of a start happens within one turn.
    const protocols: string[] = []
    let done = false
    const finish = () => {
      done = true
    }
    starting.then(finish, finish)
    while (!done) {
      protocols.push(`/hermes/${protocols.length}/1.0.0`)
      serveEcho(b, protocols.at(-1))
      await new Promise<void>((resolve) => {
        if (protocols.length % 20 === 0) setImmediate(resolve)
        else process.nextTick(resolve)
      })
    }
    await starting
    // The last ones are enough: those before the first turn of the start are not in question.
    for (const protocol of protocols.slice(-60)) (await open(a, b, protocol)).abort(new Error('done'))
  })

  it('stops when it is asked to while it starts', async () => {
    const a = network()
    const starting = a.start()
    await a.stop()
    await starting
    expect(a.addresses()).toEqual([])
  })

  it('serves again on the same port after a stop', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(a)
    const port = a.addresses()[0]?.split('/')[4]
    await a.stop()
    const again = network({ listen: [`/ip4/127.0.0.1/tcp/${port}`] })
    serveEcho(again)
    await again.start()
    await open(b, again)
    await again.stop()
    await again.start()
    await open(b, again)
  })

  it('says which address is in use, and leaves nothing behind', async () => {
    const a = await started()
    const taken = (a.addresses()[0] as string).replace(/\/p2p\/.*/, '')
    const b = network({ listen: ['/ip4/127.0.0.1/tcp/0', taken] })
    await expect(b.start()).rejects.toMatchObject({ code: 'ADDRESS_IN_USE', details: { address: taken } })
    await expect(b.start()).rejects.toThrow(taken)
    await a.stop()
    await b.start()
    expect(b.addresses()).toHaveLength(2)
  })

  it('says which address cannot be listened on', async () => {
    for (const text of ['localhost:4001', '/ip4/127.0.0.1/udp/4001', '/ip4/192.0.2.1/tcp/0']) {
      const error = await network({ listen: [text] })
        .start()
        .then(
          () => undefined,
          (reason) => reason,
        )
      expect(error).toMatchObject({ code: 'INVALID_ADDRESS', details: { address: text } })
      expect(error.message).toContain(text)
    }
    await expect(network({ announce: ['nowhere'] }).start()).rejects.toMatchObject({ code: 'INVALID_ADDRESS' })
  })

  it('refuses options that cannot work, naming the field', () => {
    const privateKey = randomBytes(32)
    const make = (options: object) => () => createLibp2pNetwork({ privateKey, networkName: 'test', ...options })
    expect(make({ privateKey: randomBytes(31) })).toThrow(/privateKey/)
    expect(make({ networkName: 'No' })).toThrow(/networkName/)
    expect(make({ dialTimeoutMs: 0 })).toThrow(/dialTimeoutMs/)
    expect(make({ limits: { maxConnections: Number.NaN } })).toThrow(/limits\.maxConnections/)
    expect(make({ topics: { a: -1 } })).toThrow(/topics\[a\]/)
  })

  it('says that it is not started', async () => {
    const a = network()
    const signal = soon()
    const code = 'NOT_STARTED'
    await expect(a.open({ addresses: [] }, PROTOCOL, { signal })).rejects.toMatchObject({ code })
    await expect(a.provide(randomBytes(4), { signal })).rejects.toMatchObject({ code })
    await expect(a.publish('hermes/test/x', randomBytes(1))).rejects.toMatchObject({ code })
    await expect(a.findProviders(randomBytes(4), { signal })[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code,
    })
    await a.unprovide(randomBytes(4))
    await a.hangUp(a.peerId)
  })

  it('tells of the first connection to a peer and of the end of the last', async () => {
    const [a, b] = await Promise.all([started(), started()])
    serveEcho(b)
    const told: string[] = []
    a.observe({
      connected: (peer) => {
        told.push(`+${peer}`)
        throw new Error('an observer that throws')
      },
      disconnected: (peer) => told.push(`-${peer}`),
    })
    await open(a, b)
    await a.hangUp(b.peerId)
    expect(told).toEqual([`+${b.peerId}`, `-${b.peerId}`])
    await open(a, b)
    await b.stop()
    await until(() => told.length === 4, 'the end of the other side')
    const c = await started()
    serveEcho(c)
    await open(a, c)
    await a.stop()
    expect(told.slice(4)).toEqual([`+${c.peerId}`, `-${c.peerId}`])
  })
})
