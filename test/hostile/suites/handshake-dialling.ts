import { signCertificate, toBase64url } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { besieged, honestKey, strangerKey } from '../besieged.ts'
import { craft } from '../craft.ts'
import { falseProof, interleave, sayHello, staleChallenge } from '../handshake-attacks.ts'
import { bytesOf, handHandshake, helloOf, jsonOf, proofOf } from '../raw-handshake.ts'
import { dialLink } from '../raw-link.ts'
import { partOf } from '../raw-stream.ts'
import { refused, verdictOf } from '../verdict.ts'

describe('a handshake that is attacked by the one who dials', () => {
  const siege = besieged()

  /** A handshake that has said its hello and read the challenge: the proof is next. */
  async function challenged() {
    const { victim, raw, self } = siege.attack
    victim.mark()
    const ids = { initiator: raw.peerId, responder: victim.self.peerId }
    const hand = handHandshake(await raw.open(victim.address), self, ids)
    hand.send(helloOf(self))
    await hand.read()
    return hand
  }

  it('in the name of another, with its own key: refused', async () => {
    expect(await sayHello(siege.attack, helloOf(siege.attack.self, { agent_id: 'honest' }))).toEqual(
      refused('IDENTITY_MISMATCH'),
    )
    await siege.untouched()
  })

  it('under its own name, with the key of another: refused', async () => {
    const key = toBase64url(honestKey.key.publicKey.raw)
    expect(await sayHello(siege.attack, helloOf(siege.attack.self, { key }))).toEqual(refused('IDENTITY_MISMATCH'))
    await siege.untouched()
  })

  it('in the name and with the public key of another: refused', async () => {
    expect(await sayHello(siege.attack, helloOf(honestKey))).toEqual(refused('IDENTITY_MISMATCH'))
    await siege.untouched()
  })

  it('in the name of the victim itself: refused', async () => {
    expect(await sayHello(siege.attack, helloOf(siege.attack.self, { agent_id: 'victim' }))).toEqual(
      refused('IDENTITY_MISMATCH'),
    )
    await siege.untouched()
  })

  it('with its own certificate under another id: refused', async () => {
    const certificate = signCertificate(
      {
        kind: 'organisation',
        network: 'default',
        agent_id: 'honest',
        agent_key: siege.attack.self.key.publicKey.raw,
        serial: 1,
        not_before: Date.now() - 1000,
        not_after: Date.now() + 100_000,
        team: 'ops',
        roles: [],
      },
      siege.attack.self.key,
    )
    const hello = helloOf(siege.attack.self, { agent_id: 'honest', certificates: [toBase64url(certificate)] })
    expect(await sayHello(siege.attack, hello)).toEqual(refused('IDENTITY_MISMATCH'))
    await siege.untouched()
  })

  it('from another network: refused', async () => {
    expect(await sayHello(siege.attack, helloOf(siege.attack.self, { network: 'other' }))).toEqual(
      refused('HANDSHAKE_REFUSED'),
    )
    await siege.untouched()
  })

  it('as a stranger: refused, and told nothing but the code', async () => {
    const stranger = await siege.by(strangerKey)
    expect(await sayHello(stranger, helloOf(strangerKey))).toEqual(refused('NOT_ALLOWED'))
    await siege.untouched()
  })

  it('with the proof for a challenge of before: refused', async () => {
    expect(await staleChallenge(siege.attack)).toEqual(refused('HANDSHAKE_REFUSED'))
    siege.victim.mark()
    await siege.untouched()
  })

  it('with two handshakes interleaved, one in each direction: both refused', async () => {
    expect(await interleave(siege.attack)).toEqual({
      linked: 0,
      codes: ['HANDSHAKE_REFUSED', 'HANDSHAKE_REFUSED'],
      told: ['HANDSHAKE_REFUSED', 'HANDSHAKE_REFUSED'],
    })
    await siege.untouched()
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
    expect(await falseProof(siege.attack, falsify)).toEqual(refused('HANDSHAKE_REFUSED'))
    await siege.untouched()
  })

  it('with a handshake of its own that was recorded before: refused', async () => {
    const hand = await challenged()
    const proof = hand.sendSigned('proof', proofOf())
    await hand.readSigned()
    hand.stream.reset()
    await siege.victim.until('link.down')
    siege.victim.mark()
    const again = await siege.attack.raw.open(siege.victim.address)
    again.send(Buffer.concat([hand.binding.messages[0] as Uint8Array, proof]))
    // Before the refusal stands the challenge, whose nonce is a new one.
    const challenge = JSON.parse(Buffer.from(await again.part()).toString()) as { nonce: string }
    const before = JSON.parse(Buffer.from((hand.binding.messages[1] as Uint8Array).subarray(2)).toString()) as {
      nonce: string
    }
    expect(challenge.nonce).not.toBe(before.nonce)
    expect(await verdictOf(siege.victim, again)).toEqual(refused('HANDSHAKE_REFUSED'))
    siege.victim.mark()
    await siege.untouched()
  })

  it('with an envelope in the place of the proof: refused, and nothing is started', async () => {
    const hand = await challenged()
    const from = { self: siege.attack.self, to: 'victim', toEpoch: 1, epoch: Date.now(), sequence: 1 }
    hand.stream.send(craft(from, { target_capability: 'echo', payload: { input: 'too early' } }).frame)
    // A frame begins with its tag, which no JSON does.
    hand.stream.send(Buffer.alloc(64))
    expect(await verdictOf(siege.victim, hand.stream)).toEqual(refused('MALFORMED'))
    expect(siege.victim.served).not.toContain('too early')
    await siege.untouched()
  })

  it('with a second hello in the place of the proof: refused', async () => {
    const hand = await challenged()
    hand.sendSigned('proof', helloOf(siege.attack.self))
    // Its signature would hold; it is no proof.
    expect(await verdictOf(siege.victim, hand.stream)).toEqual(refused('MALFORMED'))
    await siege.untouched()
  })

  it('with two handshakes on one connection: the second is refused while the first is under way', async () => {
    await siege.attack.raw.connect(siege.victim.address)
    const first = await challenged()
    const second = await siege.attack.raw.open(siege.victim.address)
    second.send(partOf(bytesOf(helloOf(siege.attack.self))))
    const answer = jsonOf(await second.part())
    first.stream.reset()
    second.reset()
    expect(answer).toEqual({ error_code: 'HANDSHAKE_REFUSED' })
    await siege.victim.until('handshake.refused', ({ code }) => code === 'PEER_UNREACHABLE')
    await siege.untouched()
  })

  it('with a life that is over: refused as the duplicate', async () => {
    const link = await dialLink(siege.attack.raw, siege.attack.self, siege.victim.address, { epoch: Date.now() })
    link.reset()
    await siege.victim.until('link.down')
    expect(await falseProof(siege.attack, {}, { epoch: link.epoch - 1 })).toEqual(refused('DUPLICATE_AGENT'))
    siege.victim.mark()
    await siege.untouched()
  })
})
