import { capability, type Peer } from 'hermes-peer'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { deferred, until } from '../../packages/peer/test/waiting.ts'
import { rawRelay } from './raw-relay.ts'
import { agent, eventually, listed, peerIdNamed } from './support.ts'

const shout = capability('shout', {
  description: 'Says a text again, louder.',
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
  effects: 'none',
})
const spell = capability('spell', {
  description: 'Says a text letter by letter.',
  input: z.object({ text: z.string() }),
  yields: z.string(),
  output: z.object({ letters: z.number() }),
  effects: 'none',
})
const archive = capability('archive', {
  description: 'Stores a text once somebody has agreed.',
  input: z.object({ text: z.string() }),
  asks: { question: z.object({ text: z.string() }), answer: z.object({ agreed: z.boolean() }) },
  output: z.object({ stored: z.string() }),
  effects: 'none',
})

/** Passed through the relay in every call, so that it would be found in what the relay can read. */
const MARKER = 'geheim-机密-d41c'

const provider = (peer: Peer): Peer =>
  peer
    .provide(shout, async ({ text }) => ({ text: text.toUpperCase() }))
    .provide(spell, async function* ({ text }) {
      for (const letter of text) yield letter
      return { letters: [...text].length }
    })
    .provide(archive, async ({ text }, ctx) => {
      const { agreed } = await ctx.ask({ text })
      return { stored: agreed ? text : '' }
    })

/** An agent that nobody can dial, and one that calls it through the relay at that address. */
async function pair(relay: string): Promise<{ hidden: Peer; caller: Peer; addresses: string[] }> {
  const hidden = await provider(agent('hidden', { listen: [], relay: { via: [relay] } })).start()
  const addresses = [...hidden.addresses]
  const caller = await agent('caller', { bootstrap: addresses }).start()
  return { hidden, caller, addresses }
}

describe('an agent that listens on nothing', () => {
  it('is reachable through a relay for calls, streams and tasks, which the relay cannot read', async () => {
    const relay = await rawRelay('relay')
    const { caller, addresses } = await pair(relay.address)
    expect(addresses).toEqual([`${relay.address}/p2p-circuit/p2p/${peerIdNamed('hidden')}`])

    expect(await caller.call(shout, { text: MARKER })).toEqual({ text: MARKER.toUpperCase() })

    const stream = caller.stream(spell, { text: MARKER })
    let letters = ''
    for await (const letter of stream) letters += letter
    expect(letters).toBe(MARKER)
    expect(await stream.result).toEqual({ letters: MARKER.length })

    const task = await caller.submit(archive, { text: MARKER })
    for await (const update of task.updates()) if (update.type === 'question') await update.answer({ agreed: true })
    expect(await task.result()).toEqual({ stored: MARKER })

    // Larger than an envelope, so on a stream of its own, and larger than any window on the way.
    const long = MARKER.repeat(100_000)
    expect(await caller.call(shout, { text: long })).toEqual({ text: long.toUpperCase() })

    const read = Buffer.concat(relay.seen)
    expect(read.length).toBeGreaterThan(2 * Buffer.byteLength(long))
    for (const text of [MARKER, 'shout', 'sha256:', 'caller']) expect(read.includes(text), text).toBe(false)
  })

  it('would be read by a relay that is an end itself: the check can fail', async () => {
    const relay = await rawRelay('relay')
    const other = await rawRelay('other')
    const { createLibp2p } = await import('libp2p')
    const [{ tcp }, { noise }, { yamux }, { multiaddr }] = await Promise.all([
      import('@libp2p/tcp'),
      import('@chainsafe/libp2p-noise'),
      import('@chainsafe/libp2p-yamux'),
      import('@multiformats/multiaddr'),
    ])
    const node = await createLibp2p({ transports: [tcp()], connectionEncrypters: [noise()], streamMuxers: [yamux()] })
    onTestFinished(() => node.stop())
    const stream = await node.dialProtocol(multiaddr(relay.address), '/echo')
    stream.send(Buffer.from(MARKER))
    await until(() => Buffer.concat(relay.seen).includes(MARKER), 'the relay to read it')
    expect(Buffer.concat(other.seen).includes(MARKER)).toBe(false)
  })

  it('F-30 relay slot not renewed: it is called again after the relay restarts, and says when it could not be', async () => {
    const relay = await rawRelay('relay')
    const { hidden, caller, addresses } = await pair(relay.address)
    await caller.call(shout, { text: 'a' })
    const told: string[] = []
    hidden.events.on('relay.lost', ({ reachable }) => told.push(`lost ${reachable}`))
    hidden.events.on('relay.reserved', ({ addresses: at }) => told.push(`reserved ${at.length}`))
    await relay.stop()
    await until(() => hidden.addresses.length === 0, 'its address to be withdrawn')
    await until(() => told.length > 0, 'the loss to be told')
    expect(told[0]).toBe('lost false')
    await rawRelay('relay', Number(relay.address.split('/')[4]))
    await until(() => hidden.addresses.length > 0, 'another slot')
    expect(hidden.addresses).toEqual(addresses)
    expect(told.at(-1)).toBe('reserved 1')
    expect(await eventually(() => caller.call(shout, { text: 'b' }), 'a call')).toEqual({ text: 'B' })
  })

  it('starts without its relay, and is reachable once that is there', async () => {
    const relay = await rawRelay('relay')
    await relay.stop()
    const lost = deferred<string>()
    const hidden = provider(agent('hidden', { listen: [], relay: { via: [relay.address] } }))
    hidden.events.on('relay.lost', ({ reason }) => lost.resolve(reason))
    await hidden.start()
    expect(await lost.promise).toBe('refused')
    expect(hidden.addresses).toEqual([])
    await rawRelay('relay', Number(relay.address.split('/')[4]))
    await until(() => hidden.addresses.length > 0, 'a slot')
    const caller = await agent('caller', { bootstrap: [...hidden.addresses] }).start()
    expect(await caller.call(shout, { text: 'spät' })).toEqual({ text: 'SPÄT' })
  })

  it('is found by capability through a relay that is an agent itself, which lets in whom it trusts', async () => {
    const relay = await agent('relay', { relay: { server: true } }).start()
    const via = [relay.addresses[0] as string]
    const hidden = await provider(agent('hidden', { listen: [], relay: { via } })).start()
    expect(hidden.addresses).toEqual([`${via[0]}/p2p-circuit/p2p/${peerIdNamed('hidden')}`])
    // It knows the relay alone: presence or the DHT tell it of the other.
    const caller = await agent('caller', { bootstrap: via }).start()
    expect(await eventually(() => caller.call(shout, { text: 'über' }), 'a call')).toEqual({ text: 'ÜBER' })
  })

  it('gets no slot where it is not trusted, and is told so', async () => {
    const relay = await agent('relay', {
      relay: { server: true },
      gate: false,
      trust: { allow: listed('caller') },
    }).start()
    const lost = deferred<string>()
    const hidden = agent('hidden', { listen: [], relay: { via: [relay.addresses[0] as string] } })
    hidden.events.on('relay.lost', ({ reason }) => lost.resolve(reason))
    await hidden.start()
    expect(await lost.promise).toBe('denied: the relay does not know this peer')
    expect(hidden.addresses).toEqual([])
  })
})
