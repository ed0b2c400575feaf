import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateKeyPair } from '@libp2p/crypto/keys'
import { describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { besieged, honestKey, hostileKey, victimKey } from '../besieged.ts'
import { challengeOf, relay, sayHello, tcpRelay, welcomeOf, whenDialled } from '../handshake-attacks.ts'
import { handHandshake, helloOf } from '../raw-handshake.ts'
import { mistaking, opening, peerOver } from '../seams.ts'
import { refused, verdictOf } from '../verdict.ts'

describe('a handshake that is attacked', () => {
  const siege = besieged()

  it('by a man in the middle: what another peer says to it is worth nothing to the victim', async () => {
    const between = actor('hostile')
    const other = await siege.world.peer({ as: actor('far'), allow: [between, victimKey] })
    const { atVictim, atOther } = await relay(siege.attack, other)
    expect(atVictim).toEqual({ linked: false, code: 'IDENTITY_MISMATCH' })
    expect(atOther).toEqual({ linked: false, code: 'IDENTITY_MISMATCH' })
    await siege.untouched()
  })

  it('by a man in the middle who answers for himself, with the proof of another: refused', async () => {
    const far = await siege.world.peer({ as: actor('far-2'), allow: [hostileKey] })
    siege.victim.mark()
    far.peer.connect(siege.attack.raw.address).catch(() => undefined)
    const inner = await siege.attack.raw.accept()
    const fromFar = handHandshake(inner, hostileKey, { initiator: far.self.peerId, responder: siege.attack.raw.peerId })
    const hello = await fromFar.read()
    // The nonce of each side is handed to the other, so that both sign as much as can be made equal.
    const outer = await siege.attack.raw.open(siege.victim.address)
    const toVictim = handHandshake(outer, hostileKey, {
      initiator: siege.attack.raw.peerId,
      responder: siege.victim.self.peerId,
    })
    toVictim.send(helloOf(hostileKey, { nonce: hello.nonce, time: hello.time }))
    const challenge = await toVictim.read()
    fromFar.send(challengeOf(hostileKey, { nonce: challenge.nonce, time: challenge.time }))
    const { raw } = await fromFar.readSigned()
    outer.send(raw)
    expect(await verdictOf(siege.victim, outer)).toEqual(refused('HANDSHAKE_REFUSED'))
    inner.reset()
    await siege.untouched()
  })

  it('by a connection to itself: it does not come up, and the victim goes on announcing', async () => {
    siege.victim.mark()
    await expect(siege.victim.peer.connect(siege.victim.address)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    // Through a relay no address tells that it leads back.
    const loop = await tcpRelay(siege.victim.address)
    await expect(siege.victim.peer.connect(loop.address)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
    await loop.stop()
    expect(siege.victim.of('link.up')).toEqual([])
    expect(siege.victim.of('peer.notice')).toEqual([])
    await siege.untouched()
  })

  it('by its own key in another’s hands: refused as a duplicate, should the transport ever let it in', async () => {
    const names = new Map([[hostileKey.peerId, victimKey.peerId]])
    const mirrored = await siege.world.peer({
      as: victimKey,
      allow: [hostileKey],
      make: peerOver(opening(({ network }) => ({ network: mistaking(network, names) }))),
    })
    expect(await sayHello({ ...siege.attack, victim: mirrored }, helloOf(victimKey))).toEqual(
      refused('DUPLICATE_AGENT'),
    )
    expect(mirrored.of('peer.notice')).toEqual([])
    await mirrored.peer.stop()
    await siege.untouched()
  })

  it('with a transport key of another kind, and the public key of an agent that is admitted: refused', async () => {
    const other = await siege.world.raw(await generateKeyPair('secp256k1'))
    const verdict = await sayHello({ ...siege.attack, raw: other }, helloOf(honestKey))
    expect(verdict).toEqual(refused('IDENTITY_MISMATCH'))
    await siege.untouched()
  })

  it('leaves no pin of somebody whose handshake failed', async () => {
    const pins = join(siege.world.place.path, 'pins.json')
    const pinner = await siege.world.peer({ as: actor('pinner'), trust: { pins } })
    const failing = { ...siege.attack, victim: pinner }
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
    await siege.untouched()
  })
})
