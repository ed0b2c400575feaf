import { randomBytes } from 'node:crypto'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { RelayLimits } from '../../src/network/libp2p/relay/server.ts'
import type { Network, NetworkEvents } from '../../src/network/network.ts'
import { until } from '../waiting.ts'
import { deadAddress, network, open, PROTOCOL, record, serveEcho, soon, started } from './support.ts'

type Slot = Parameters<NonNullable<NetworkEvents['relayed']>>[0]

const LIMITS: RelayLimits = {
  open: true,
  reservations: 16,
  reservationsPerAddress: 16,
  reservationMs: 60_000,
  connectionBytes: 1024 ** 3,
  connectionMs: 60 * 60_000,
}
const relayWith = (limits: Partial<RelayLimits> = {}, more: Parameters<typeof started>[0] = {}) =>
  started({ relay: { server: { ...LIMITS, ...limits } }, ...more })

/** A network that listens on nothing, with what it was told of its slots. */
async function hiddenBehind(relay: Network | string, more: Parameters<typeof started>[0] = {}) {
  const address = typeof relay === 'string' ? relay : (relay.addresses()[0] as string)
  const hidden = network({ listen: [], relay: { via: [address] }, ...more })
  const slots: Slot[] = []
  hidden.observe({ relayed: (slot) => slots.push(slot) })
  serveEcho(hidden)
  await hidden.start()
  return { hidden, slots }
}

async function echoes(from: Network, to: Network, bytes = randomBytes(100)): Promise<void> {
  const channel = await open(from, to)
  const told = record(channel, () => undefined)
  channel.send(bytes)
  await until(() => told.bytes === bytes.length, 'the echo')
  expect(Buffer.concat(told.chunks).equals(bytes)).toBe(true)
  channel.abort(new Error('served its purpose'))
}

describe('a slot at a relay', () => {
  it('is renewed before it ends, and what runs over it goes on', async () => {
    const relay = await relayWith({ reservationMs: 2000 })
    const { hidden, slots } = await hiddenBehind(relay)
    const caller = await started()
    const channel = await open(caller, hidden)
    const told = record(channel)
    const before = performance.now()
    // Two whole lives of a slot.
    await until(() => performance.now() - before > 4500, 'slots to come to their end')
    channel.send(Buffer.from('still there'))
    await until(() => told.bytes === 11, 'the echo')
    expect(told.closed).toEqual([])
    // Renewals are no news.
    expect(slots).toHaveLength(1)
    await echoes(await started(), hidden)
  })

  it('is let go when its holder goes, so that those who come and go do not use up all', async () => {
    const relay = await relayWith({ reservations: 1 })
    const first = await hiddenBehind(relay)
    const second = await hiddenBehind(relay)
    expect(second.slots[0]).toMatchObject({ addresses: [], reason: 'the relay is full' })
    expect(second.hidden.addresses()).toEqual([])
    await first.hidden.stop()
    await until(() => second.hidden.addresses().length === 1, 'the slot to be free')
    await echoes(await started(), second.hidden)
  })

  it('a flood of reservations from one address takes no more than its share', async () => {
    const relay = await relayWith({ reservationsPerAddress: 3 })
    const all = await Promise.all(Array.from({ length: 6 }, () => hiddenBehind(relay)))
    const served = all.filter(({ hidden }) => hidden.addresses().length > 0)
    expect(served).toHaveLength(3)
    for (const { slots } of all) {
      if (slots[0]?.addresses.length === 0) expect(slots[0].reason).toBe('denied: the relay does not know this peer')
    }
    await echoes(await started(), served[0]?.hidden as Network)
  })

  it('is only for peers that are admitted, unless the relay is open', async () => {
    const seed = randomBytes(32)
    const friend = network({ privateKey: seed })
    const relay = await relayWith({ open: false })
    relay.observe({ linked: (peerId) => peerId === friend.peerId })
    const { slots } = await hiddenBehind(relay)
    expect(slots[0]).toMatchObject({ addresses: [], reason: 'denied: the relay does not know this peer' })
    // Without a gate trust is not asked, so that a link is what counts.
    const gated = await relayWith(
      { open: false },
      {
        gate: {
          standing: () => 'unknown',
          named: new Set([friend.peerId]),
          unknown: 9,
          unknownMs: 60_000,
          perGroup: 9,
        },
      },
    )
    const { hidden } = await hiddenBehind(gated, { privateKey: seed })
    expect(hidden.addresses()).toHaveLength(1)
  })

  it('is asked for at several relays, and one that is down harms no other', async () => {
    const dead = `${await deadAddress()}/p2p/${network().peerId}`
    const relay = await relayWith()
    const hidden = network({ listen: [], relay: { via: [dead, relay.addresses()[0] as string] } })
    serveEcho(hidden)
    await hidden.start()
    expect(hidden.addresses()).toEqual([`${relay.addresses()[0]}/p2p-circuit/p2p/${hidden.peerId}`])
    await echoes(await started(), hidden)
  })

  it('is not asked of a peer that is no relay, and no error escapes', async () => {
    const escaped = vi.fn()
    process.on('unhandledRejection', escaped)
    onTestFinished(() => void process.off('unhandledRejection', escaped))
    const { hidden, slots } = await hiddenBehind(await started())
    expect(slots[0]).toMatchObject({ addresses: [], reason: 'unsupported' })
    expect(hidden.addresses()).toEqual([])
    expect(escaped).not.toHaveBeenCalled()
  })
})

describe('what a relay bounds', () => {
  it('ends a connection that carries too much, and the next one is made anew', async () => {
    const relay = await relayWith({ connectionBytes: 200_000 })
    const { hidden } = await hiddenBehind(relay)
    const caller = await started()
    const channel = await open(caller, hidden)
    const told = record(channel)
    channel.send(randomBytes(500_000))
    await until(() => told.closed.length === 1, 'the connection to end')
    expect(told.closed[0]).toBeInstanceOf(Error)
    await echoes(caller, hidden)
  })

  it('carries nothing for a peer that has asked it for no slot', async () => {
    const [relay, listening, caller] = await Promise.all([relayWith(), started(), started()])
    serveEcho(listening)
    await open(listening, relay, '/hermes/barrier/1.0.0')
    const address = `${relay.addresses()[0]}/p2p-circuit/p2p/${listening.peerId}`
    await expect(
      caller.open({ peerId: listening.peerId, addresses: [address] }, PROTOCOL, { signal: soon() }),
    ).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
  })
})

describe('both ways', () => {
  it('a direct address is taken before one through a relay', async () => {
    const relay = await relayWith()
    const both = network({ relay: { via: [relay.addresses()[0] as string] } })
    serveEcho(both)
    await both.start()
    const addresses = both.addresses()
    expect(addresses.map((address) => address.includes('/p2p-circuit/'))).toEqual([false, true])
    const caller = await started()
    const target = { peerId: both.peerId, addresses: [...addresses].reverse() }
    const channel = await caller.open(target, PROTOCOL, { signal: soon() })
    expect(channel.remoteAddress).not.toContain('p2p-circuit')
  })

  it('large answers come whole through a relay, also while the reader is slow', async () => {
    const relay = await relayWith()
    const { hidden } = await hiddenBehind(relay)
    const caller = await started()
    const channel = await open(caller, hidden)
    let paused = 0
    const told = record(channel, () => {
      if (paused++ % 20 !== 0) return
      channel.pause()
      setTimeout(() => channel.resume(), 1)
    })
    const sent = randomBytes(4_000_000)
    channel.send(sent)
    await until(() => told.bytes === sent.length, 'all of it')
    expect(Buffer.concat(told.chunks).equals(sent)).toBe(true)
  })

  it('in a private network the relay needs the key too, and sees ciphertext all the same', async () => {
    const preSharedKey = randomBytes(32)
    const relay = await relayWith({}, { preSharedKey })
    const { hidden } = await hiddenBehind(relay, { preSharedKey })
    await echoes(await started({ preSharedKey }), hidden)
  })
})

describe('a direct connection', () => {
  it('is made beside the relayed one where the caller can be dialled, and channels go over it from then on', async () => {
    const relay = await relayWith()
    const { hidden } = await hiddenBehind(relay)
    // DCUtR dials public addresses only; a name counts as one.
    const port = (await deadAddress()).split('/')[4] as string
    const caller = await started({ listen: [`/ip4/127.0.0.1/tcp/${port}`], announce: [`/dns4/localhost/tcp/${port}`] })
    const direct = vi.fn()
    const directAtHidden = vi.fn()
    caller.observe({ direct })
    hidden.observe({ direct: directAtHidden })
    const relayed = await open(caller, hidden)
    expect(relayed.remoteAddress).toContain('/p2p-circuit/')
    const told = record(relayed)
    await until(() => direct.mock.calls.length > 0 && directAtHidden.mock.calls.length > 0, 'the direct connection')
    expect(direct).toHaveBeenCalledWith(hidden.peerId)
    expect((await open(caller, hidden)).remoteAddress).not.toContain('/p2p-circuit/')
    expect((await open(hidden, caller, '/hermes/barrier/1.0.0')).remoteAddress).not.toContain('/p2p-circuit/')
    // What began over the relay is not cut off.
    relayed.send(Buffer.from('still there'))
    await until(() => told.bytes === 11, 'the echo')
    expect(told.closed).toEqual([])
  })
})
