import { capability, isHermesError, type Peer } from 'hermes-peer'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { until } from '../../packages/peer/test/waiting.ts'
import { dishonestRelay } from './dishonest-relay.ts'
import { agent, eventually, freePort, peerIdNamed } from './support.ts'

const shout = capability('shout', {
  description: 'Says a text again, louder.',
  input: z.object({ text: z.string() }),
  output: z.object({ text: z.string() }),
  effects: 'none',
})

/** Silence is noticed soon. */
const tuning = {
  silenceMs: 300,
  probeMs: 200,
  probesLost: 2,
  tickMs: 50,
  handshakeTimeoutMs: 1500,
  dialTimeoutMs: 3000,
}

const portOf = (peer: Peer): number => Number(peer.addresses[0]?.split('/')[4])

/** An agent that can be reached through a dishonest relay only, as far as its caller knows. */
async function scene() {
  const port = await freePort()
  const relay = await dishonestRelay(port)
  const bootstrap = [`${relay.address}/p2p-circuit/p2p/${peerIdNamed('other')}`]
  // No gate: the relay is a stranger. Nobody tells of a way around it.
  const listen = [`/ip4/127.0.0.1/tcp/${port}`]
  const target = await agent('other', { tuning, gate: false, listen, announce: bootstrap })
    .provide(shout, async ({ text }) => ({ text: text.toUpperCase() }))
    .start()
  const nowhere = [`/ip4/127.0.0.1/tcp/${await freePort()}`]
  const caller = agent('caller', { bootstrap, tuning, gate: false, announce: nowhere })
  return { target, relay, caller }
}

/** Ends of a call that nobody could have forged. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'answered'
  } catch (error) {
    return isHermesError(error) ? error.code : String(error)
  }
}

describe('a hostile relay', () => {
  const flip = (bytes: Uint8Array): Uint8Array => {
    const out = Uint8Array.from(bytes)
    out[out.length - 1] = (out.at(-1) ?? 0) ^ 1
    return out
  }
  it.each([
    ['garbles bytes', flip],
    ['swallows bytes', () => undefined],
    ['sends bytes twice', (bytes: Uint8Array) => Buffer.concat([bytes, bytes])],
    ['leaves out the last byte', (bytes: Uint8Array) => bytes.subarray(0, -1)],
  ])('that %s makes calls fail in time and with a type, never with a wrong answer', async (_, tamper) => {
    const { relay, caller } = await scene()
    await caller.start()
    expect(await eventually(() => caller.call(shout, { text: 'ä' }), 'a call')).toEqual({ text: 'Ä' })
    relay.tamper = tamper
    const code = await codeOf(caller.call(shout, { text: 'b' }, { timeoutMs: 8000 }))
    expect(['PEER_UNREACHABLE', 'NO_CANDIDATE', 'TIMEOUT', 'DIRECTORY_UNREACHABLE']).toContain(code)
    relay.tamper = (bytes) => bytes
    expect(await eventually(() => caller.call(shout, { text: 'c' }), 'a call')).toEqual({ text: 'C' })
  })

  it('that pretends to be the target is refused by the encryption, before a word of ours is said', async () => {
    const impostor = await agent('relay', { tuning, gate: false }).start()
    const relay = await dishonestRelay(portOf(impostor))
    const seen: unknown[] = []
    impostor.events.onAny((event) => {
      if (event.type.startsWith('handshake') || event.type.startsWith('link')) seen.push(event)
    })
    const caller = agent('caller', { tuning, gate: false })
    const refused: string[] = []
    caller.events.on('link.up', () => refused.push('a link'))
    await caller.start()
    const error = await caller.connect(`${relay.address}/p2p-circuit/p2p/${peerIdNamed('other')}`).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(isHermesError(error) && error.code).toBe('PEER_UNREACHABLE')
    expect(String(error)).toMatch(/wrong peer/)
    expect(relay.passed).toBeGreaterThan(0)
    expect(refused).toEqual([])
    expect(seen).toEqual([])
  })
})

describe('the gate by keys', () => {
  it('cuts off an agent that is not on the list before anything is said, in both directions', async () => {
    const server = await agent('other', { gate: 'keys' })
      .provide(shout, async ({ text }) => ({ text: text.toUpperCase() }))
      .start()
    const heard: string[] = []
    server.events.onAny(({ type }) => heard.push(type))
    const stranger = await agent('stranger', {
      gate: false,
      bootstrap: [...server.addresses],
      trust: { allow: [] },
    }).start()
    const code = await codeOf(stranger.call(shout, { text: 'a' }, { timeoutMs: 1500 }))
    expect(['NO_CANDIDATE', 'PEER_UNREACHABLE', 'DIRECTORY_UNREACHABLE', 'TIMEOUT']).toContain(code)
    expect(heard.filter((type) => type.startsWith('handshake') || type.startsWith('link'))).toEqual([])
    const friend = await agent('caller', { bootstrap: [...server.addresses] }).start()
    expect(await friend.call(shout, { text: 'b' })).toEqual({ text: 'B' })
    await until(() => heard.includes('link.up'), 'the link of the friend')
  })
})
