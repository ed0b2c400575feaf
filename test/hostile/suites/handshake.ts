import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { signCertificate, toBase64url } from '@hermes-peer/protocol'
import { generateKeyPair } from '@libp2p/crypto/keys'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { craft } from '../craft.ts'
import { eventually } from '../eventually.ts'
import {
  type Attack,
  challengeOf,
  falseProof,
  interleave,
  relay,
  sayHello,
  staleChallenge,
  tcpRelay,
  welcomeOf,
  whenDialled,
} from '../handshake-attacks.ts'
import { bytesOf, handHandshake, helloOf, jsonOf, proofOf } from '../raw-handshake.ts'
import { dialLink } from '../raw-link.ts'
import { partOf } from '../raw-stream.ts'
import { honest, scene } from '../scene.ts'
import { mistaking, opening, peerOver } from '../seams.ts'
import { refused, verdictOf } from '../verdict.ts'
import { echo, type Victim } from '../victim.ts'

const [victimKey, honestKey, hostileKey, strangerKey] = ['victim', 'honest', 'hostile', 'stranger'].map((name) =>
  actor(name),
) as [ReturnType<typeof actor>, ReturnType<typeof actor>, ReturnType<typeof actor>, ReturnType<typeof actor>]

describe('a handshake that is attacked', () => {
  let clear = async (): Promise<void> => undefined
  const world = scene((end) => {
    clear = end
  })
  let victim: Victim
  let good: Victim
  let attack: Attack
  let calls = 0

  beforeAll(async () => {
    victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    good = await honest(world, honestKey, victim)
    attack = { victim, raw: await world.raw(hostileKey), self: hostileKey, other: honestKey }
  })
  afterAll(() => clear())

  /** Nothing is left of an attack: the honest link still stands, its sequence goes on, and no other has come up. */
  async function untouched(): Promise<void> {
    const links = victim.links
    const before = victim.served.length
    const mark = ++calls
    expect(await good.peer.call(echo, mark)).toBe(mark)
    expect(victim.served.slice(before)).toEqual([mark])
    expect(links).toBe(1)
    expect(victim.peer.balance()).toEqual({ calls: 0, succeeded: 0, failed: 0, inFlight: 0, failovers: 0 })
    expect(victim.of('window.gap')).toEqual([])
    expect(victim.of('directory.joined')).toEqual([])
    expect(victim.of('directory.left')).toEqual([])
    expect(world.escaped).toEqual([])
    await eventually(
      () =>
        attack.raw.connections.every(({ streams }) =>
          streams.every(({ protocol }) => protocol !== '/hermes/link/1.0.0'),
        ),
      'the streams of the attack to be gone',
    )
    for (const connection of attack.raw.connections) connection.abort(new Error('done'))
  }

  describe('as the one who dials', () => {
    it('in the name of another, with its own key: refused', async () => {
      expect(await sayHello(attack, helloOf(attack.self, { agent_id: 'honest' }))).toEqual(refused('IDENTITY_MISMATCH'))
      await untouched()
    })

    it('under its own name, with the key of another: refused', async () => {
      const key = toBase64url(honestKey.key.publicKey.raw)
      expect(await sayHello(attack, helloOf(attack.self, { key }))).toEqual(refused('IDENTITY_MISMATCH'))
      await untouched()
    })

    it('in the name and with the public key of another: refused', async () => {
      expect(await sayHello(attack, helloOf(honestKey))).toEqual(refused('IDENTITY_MISMATCH'))
      await untouched()
    })

    it('in the name of the victim itself: refused', async () => {
      expect(await sayHello(attack, helloOf(attack.self, { agent_id: 'victim' }))).toEqual(refused('IDENTITY_MISMATCH'))
      await untouched()
    })

    it('with its own certificate under another id: refused', async () => {
      const certificate = signCertificate(
        {
          kind: 'organisation',
          network: 'default',
          agent_id: 'honest',
          agent_key: attack.self.key.publicKey.raw,
          serial: 1,
          not_before: Date.now() - 1000,
          not_after: Date.now() + 100_000,
          team: 'ops',
          roles: [],
        },
        attack.self.key,
      )
      const hello = helloOf(attack.self, { agent_id: 'honest', certificates: [toBase64url(certificate)] })
      expect(await sayHello(attack, hello)).toEqual(refused('IDENTITY_MISMATCH'))
      await untouched()
    })

    it('from another network: refused', async () => {
      expect(await sayHello(attack, helloOf(attack.self, { network: 'other' }))).toEqual(refused('HANDSHAKE_REFUSED'))
      await untouched()
    })

    it('as a stranger: refused, and told nothing but the code', async () => {
      const stranger = { ...attack, raw: await world.raw(strangerKey), self: strangerKey }
      expect(await sayHello(stranger, helloOf(strangerKey))).toEqual(refused('NOT_ALLOWED'))
      await untouched()
    })

    it('with the proof for a challenge of before: refused', async () => {
      expect(await staleChallenge(attack)).toEqual(refused('HANDSHAKE_REFUSED'))
      victim.mark()
      await untouched()
    })

    it('with two handshakes interleaved, one in each direction: both refused', async () => {
      expect(await interleave(attack)).toEqual({
        linked: 0,
        codes: ['HANDSHAKE_REFUSED', 'HANDSHAKE_REFUSED'],
        told: ['HANDSHAKE_REFUSED', 'HANDSHAKE_REFUSED'],
      })
      await untouched()
    })

    it.each<[string, Parameters<typeof falseProof>[1]]>([
      ['without a signature', { sign: () => Buffer.alloc(64) }],
      ['signed by another key', { sign: (message) => strangerKey.key.sign(message) }],
      ['signed as a welcome', { domain: 'welcome' }],
      ['signed as an envelope', { domain: 'envelope' }],
      ['with the roles exchanged', { bound: (binding) => ({ ...binding, roles: ['R', 'I'] }) }],
      [
        'with the peer ids exchanged',
        { bound: (binding) => ({ ...binding, initiator: binding.responder, responder: binding.initiator }) },
      ],
      ['bound to another responder', { bound: (binding) => ({ ...binding, responder: honestKey.peerId }) }],
      ['bound to another initiator', { bound: (binding) => ({ ...binding, initiator: honestKey.peerId }) }],
      ['bound to another network', { bound: (binding) => ({ ...binding, network: 'other' }) }],
      ['bound to another protocol', { bound: (binding) => ({ ...binding, protocol: '/hermes/link/0.9.0' }) }],
      ['not bound to the hello', { bound: (binding) => ({ ...binding, messages: binding.messages.slice(1) }) }],
      ['not bound to itself', { bound: (binding) => ({ ...binding, messages: binding.messages.slice(0, -1) }) }],
    ])('with a proof %s: refused', async (_, falsify) => {
      expect(await falseProof(attack, falsify)).toEqual(refused('HANDSHAKE_REFUSED'))
      await untouched()
    })

    it('with a handshake of its own that was recorded before: refused', async () => {
      victim.mark()
      const first = await attack.raw.open(victim.address)
      const hand = handHandshake(first, attack.self, { initiator: attack.raw.peerId, responder: victim.self.peerId })
      hand.send(helloOf(attack.self))
      await hand.read()
      const proof = hand.sendSigned('proof', proofOf())
      await hand.readSigned()
      first.reset()
      await victim.until('link.down')
      victim.mark()
      const again = await attack.raw.open(victim.address)
      again.send(Buffer.concat([hand.binding.messages[0] as Uint8Array, proof]))
      // Before the refusal stands the challenge, whose nonce is a new one.
      const challenge = JSON.parse(Buffer.from(await again.part()).toString()) as { nonce: string }
      const before = JSON.parse(Buffer.from((hand.binding.messages[1] as Uint8Array).subarray(2)).toString()) as {
        nonce: string
      }
      expect(challenge.nonce).not.toBe(before.nonce)
      expect(await verdictOf(victim, again)).toEqual(refused('HANDSHAKE_REFUSED'))
      victim.mark()
      await untouched()
    })

    it('with an envelope in the place of the proof: refused, and nothing is started', async () => {
      victim.mark()
      const stream = await attack.raw.open(victim.address)
      const hand = handHandshake(stream, attack.self, { initiator: attack.raw.peerId, responder: victim.self.peerId })
      hand.send(helloOf(attack.self))
      await hand.read()
      const from = { self: attack.self, to: 'victim', toEpoch: 1, epoch: Date.now(), sequence: 1 }
      stream.send(craft(from, { target_capability: 'echo', payload: { input: 'too early' } }).frame)
      // A frame begins with its tag, which no JSON does.
      stream.send(Buffer.alloc(64))
      expect(await verdictOf(victim, stream)).toEqual(refused('MALFORMED'))
      expect(victim.served).not.toContain('too early')
      await untouched()
    })

    it('with a second hello in the place of the proof: refused', async () => {
      victim.mark()
      const stream = await attack.raw.open(victim.address)
      const hand = handHandshake(stream, attack.self, { initiator: attack.raw.peerId, responder: victim.self.peerId })
      hand.send(helloOf(attack.self))
      await hand.read()
      hand.sendSigned('proof', helloOf(attack.self))
      // Its signature would hold; it is no proof.
      expect(await verdictOf(victim, stream)).toEqual(refused('MALFORMED'))
      await untouched()
    })

    it('with two handshakes on one connection: the second is refused while the first is under way', async () => {
      victim.mark()
      await attack.raw.connect(victim.address)
      const first = handHandshake(await attack.raw.open(victim.address), attack.self, {
        initiator: attack.raw.peerId,
        responder: victim.self.peerId,
      })
      first.send(helloOf(attack.self))
      await first.read()
      const second = await attack.raw.open(victim.address)
      second.send(partOf(bytesOf(helloOf(attack.self))))
      const answer = jsonOf(await second.part())
      first.stream.reset()
      second.reset()
      expect(answer).toEqual({ error_code: 'HANDSHAKE_REFUSED' })
      await victim.until('handshake.refused', ({ code }) => code === 'PEER_UNREACHABLE')
      await untouched()
    })

    it('with a life that is over: refused as the duplicate', async () => {
      const link = await dialLink(attack.raw, attack.self, victim.address, { epoch: Date.now() })
      link.reset()
      await victim.until('link.down')
      expect(await falseProof(attack, {}, { epoch: link.epoch - 1 })).toEqual(refused('DUPLICATE_AGENT'))
      victim.mark()
      await untouched()
    })
  })

  describe('as the one who is dialled', () => {
    it.each<[string, string, Parameters<typeof whenDialled>[1]]>([
      ['with the victim’s own hello as the challenge', 'MALFORMED', (hand, hello) => hand.send(hello)],
      [
        'with the victim’s own hello, completed',
        'IDENTITY_MISMATCH',
        (hand, hello) => hand.send({ ...challengeOf(hostileKey), ...hello }),
      ],
      [
        'with the victim’s own nonce',
        'HANDSHAKE_REFUSED',
        (hand, { nonce }) => hand.send(challengeOf(hostileKey, { nonce })),
      ],
      [
        'in the name of another',
        'IDENTITY_MISMATCH',
        (hand) => hand.send(challengeOf(hostileKey, { agent_id: 'honest' })),
      ],
      ['with key and name of another', 'IDENTITY_MISMATCH', (hand) => hand.send(challengeOf(honestKey))],
      [
        'in the name of the victim',
        'IDENTITY_MISMATCH',
        (hand) => hand.send(challengeOf(hostileKey, { agent_id: 'victim' })),
      ],
      ['from another network', 'HANDSHAKE_REFUSED', (hand) => hand.send(challengeOf(hostileKey, { network: 'other' }))],
      [
        'with the victim’s own proof as the welcome',
        'MALFORMED',
        async (hand) => {
          hand.send(challengeOf(hostileKey))
          const { raw } = await hand.readSigned()
          hand.stream.send(raw)
        },
      ],
      [
        'with the signature of the victim’s proof under a welcome',
        'HANDSHAKE_REFUSED',
        async (hand) => {
          hand.send(challengeOf(hostileKey))
          const { raw } = await hand.readSigned()
          hand.sendSigned('welcome', welcomeOf(), { sign: () => raw.subarray(-64) })
        },
      ],
      [
        'with a welcome signed as a proof',
        'HANDSHAKE_REFUSED',
        async (hand) => {
          hand.send(challengeOf(hostileKey))
          await hand.readSigned()
          hand.sendSigned('welcome', welcomeOf(), { domain: 'proof' })
        },
      ],
      [
        'with a welcome that does not bind the proof',
        'HANDSHAKE_REFUSED',
        async (hand) => {
          hand.send(challengeOf(hostileKey))
          await hand.readSigned()
          hand.sendSigned('welcome', welcomeOf(), {
            bound: (binding) => ({ ...binding, messages: binding.messages.filter((_, index) => index !== 2) }),
          })
        },
      ],
      [
        'with a welcome without a signature',
        'HANDSHAKE_REFUSED',
        async (hand) => {
          hand.send(challengeOf(hostileKey))
          await hand.readSigned()
          hand.sendSigned('welcome', welcomeOf(), { sign: () => randomBytes(64) })
        },
      ],
      [
        'with an envelope in the place of the welcome',
        'MALFORMED',
        async (hand) => {
          hand.send(challengeOf(hostileKey))
          const { body } = await hand.readSigned()
          const from = { self: hostileKey, to: 'victim', toEpoch: body.epoch as number, epoch: Date.now(), sequence: 1 }
          hand.stream.send(craft(from, { target_capability: 'echo', payload: { input: 'too early' } }).frame)
          hand.stream.send(Buffer.alloc(64))
        },
      ],
    ])('%s: refused', async (_, code, respond) => {
      expect(await whenDialled(attack, respond)).toEqual(refused(code))
      expect(victim.served).not.toContain('too early')
      await untouched()
    })

    it('with what the victim says to it, in the other direction: refused both ways', async () => {
      // The victim dials; its hello and its proof come back to it over a stream that the attacker opens.
      const back = await attack.raw.open(victim.address)
      const verdict = await whenDialled(attack, async (hand, hello) => {
        back.send(partOf(bytesOf(hello)))
        expect(await back.told()).toEqual({ error_code: 'IDENTITY_MISMATCH' })
        back.close()
        hand.send(challengeOf(hostileKey, { agent_id: 'honest' }))
      })
      expect(verdict).toEqual(refused('IDENTITY_MISMATCH'))
      await untouched()
    })

    it('by a stranger who says that another process runs under the victim’s key: the victim goes on', async () => {
      const stranger = await world.raw(actor('another stranger'))
      victim.mark()
      const answered = stranger.accept().then(async (stream) => {
        await stream.part()
        stream.send(partOf(bytesOf({ error_code: 'DUPLICATE_AGENT' })))
        return stream
      })
      await expect(victim.peer.connect(stranger.address)).rejects.toMatchObject({
        code: 'DUPLICATE_AGENT',
        remote: true,
      })
      const stream = await answered
      expect(victim.of('peer.notice')).toEqual([])
      stream.close()
      await untouched()
    })
  })

  it('by a man in the middle: what another peer says to it is worth nothing to the victim', async () => {
    const between = actor('hostile')
    const other = await world.peer({ as: actor('far'), allow: [between, victimKey] })
    const { atVictim, atOther } = await relay(attack, other)
    expect(atVictim).toEqual({ linked: false, code: 'IDENTITY_MISMATCH' })
    expect(atOther).toEqual({ linked: false, code: 'IDENTITY_MISMATCH' })
    await untouched()
  })

  it('by a man in the middle who answers for himself, with the proof of another: refused', async () => {
    const far = await world.peer({ as: actor('far-2'), allow: [hostileKey] })
    victim.mark()
    far.peer.connect(attack.raw.address).catch(() => undefined)
    const inner = await attack.raw.accept()
    const fromFar = handHandshake(inner, hostileKey, { initiator: far.self.peerId, responder: attack.raw.peerId })
    const hello = await fromFar.read()
    // The nonce of each side is handed to the other, so that both sign as much as can be made equal.
    const outer = await attack.raw.open(victim.address)
    const toVictim = handHandshake(outer, hostileKey, { initiator: attack.raw.peerId, responder: victim.self.peerId })
    toVictim.send(helloOf(hostileKey, { nonce: hello.nonce, time: hello.time }))
    const challenge = await toVictim.read()
    fromFar.send(challengeOf(hostileKey, { nonce: challenge.nonce, time: challenge.time }))
    const { raw } = await fromFar.readSigned()
    outer.send(raw)
    expect(await verdictOf(victim, outer)).toEqual(refused('HANDSHAKE_REFUSED'))
    inner.reset()
    await untouched()
  })

  it('by a connection to itself: it does not come up, and the victim goes on announcing', async () => {
    victim.mark()
    await expect(victim.peer.connect(victim.address)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    // Through a relay no address tells that it leads back.
    const loop = await tcpRelay(victim.address)
    await expect(victim.peer.connect(loop.address)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    await loop.stop()
    expect(victim.of('link.up')).toEqual([])
    expect(victim.of('peer.notice')).toEqual([])
    await untouched()
  })

  it('by its own key in another’s hands: refused as a duplicate, should the transport ever let it in', async () => {
    const names = new Map([[hostileKey.peerId, victimKey.peerId]])
    const mirrored = await world.peer({
      as: victimKey,
      allow: [hostileKey],
      make: peerOver(opening(({ network }) => ({ network: mistaking(network, names) }))),
    })
    expect(await sayHello({ ...attack, victim: mirrored }, helloOf(victimKey))).toEqual(refused('DUPLICATE_AGENT'))
    expect(mirrored.of('peer.notice')).toEqual([])
    await mirrored.peer.stop()
    await untouched()
  })

  it('with a transport key of another kind, and the public key of an agent that is admitted: refused', async () => {
    const other = await world.raw(await generateKeyPair('secp256k1'))
    const verdict = await sayHello({ ...attack, raw: other }, helloOf(honestKey))
    expect(verdict).toEqual(refused('IDENTITY_MISMATCH'))
    await untouched()
  })

  it('leaves no pin of somebody whose handshake failed', async () => {
    const pins = join(world.place.path, 'pins.json')
    const pinner = await world.peer({ as: actor('pinner'), trust: { pins } })
    const failing = { ...attack, victim: pinner }
    const verdict = await whenDialled(failing, async (hand) => {
      hand.send(challengeOf(hostileKey))
      await hand.readSigned()
      hand.sendSigned('welcome', welcomeOf(), { sign: () => randomBytes(64) })
    })
    expect(verdict).toEqual(refused('HANDSHAKE_REFUSED'))
    const skewed = await whenDialled(failing, (hand) =>
      hand.send(challengeOf(hostileKey, { time: Date.now() - 3_600_000 })),
    )
    expect(skewed).toEqual(refused('CLOCK_SKEW'))
    expect(existsSync(pins) ? JSON.parse(readFileSync(pins, 'utf8')) : {}).toEqual({})
    await untouched()
  })
})
