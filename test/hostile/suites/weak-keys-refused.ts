import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  openCertificate,
  presenceTopic,
  publicKey,
  signCertificate,
  signManifest,
  toBase64url,
} from '@hermes-peer/protocol'
import { createPeer } from 'hermes-peer'
import { beforeAll, describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { presenceOf } from '../presence.ts'
import { CHOSEN, handHandshake, helloOf } from '../raw-handshake.ts'
import { capabilityEntry, dialLink } from '../raw-link.ts'
import type { RawPeer } from '../raw-peer.ts'
import { sharedScene } from '../scene.ts'
import { refused, verdictOf } from '../verdict.ts'
import type { Victim } from '../victim.ts'
import { WEAK_KEYS, weakActor, weakTransportKey } from '../weak-keys.ts'

const victimKey = actor('victim')
const hostileKey = actor('hostile')
const weakActors = WEAK_KEYS.map((key, index) => ({ key, self: weakActor(`weak-${index}`, key) }))

describe('keys that let anybody sign', () => {
  const world = sharedScene()
  let victim: Victim
  let hostile: RawPeer

  beforeAll(async () => {
    // Listed by fingerprint, so that nothing but the look at the key itself stands against them.
    victim = await world.peer({ as: victimKey, allow: [hostileKey, ...weakActors.map(({ self }) => self)] })
    hostile = await world.raw(hostileKey)
  })

  it('number 17, and Node’s own verifier takes each of them for good', () => {
    expect(WEAK_KEYS.map(({ name }) => name)).toHaveLength(17)
    for (const { key } of weakActors)
      expect(() => publicKey(key.raw)).toThrow(expect.objectContaining({ code: 'BAD_KEY' }))
  })

  it.each(weakActors)('are refused in a hello and in a challenge: $key.name', async ({ key, self }) => {
    victim.mark()
    const raw = await world.raw(await weakTransportKey(key))
    // The transport has let it in: its own check of the signature holds for such keys.
    const stream = await raw.open(victim.address)
    handHandshake(stream, self, { initiator: raw.peerId, responder: victim.self.peerId }).send(helloOf(self))
    expect(await verdictOf(victim, stream)).toEqual(refused('BAD_KEY'))

    victim.mark()
    const dialled = expect(victim.peer.connect(raw.address)).rejects.toMatchObject({ code: 'BAD_KEY' })
    const other = await raw.accept()
    const hand = handHandshake(other, self, { initiator: victim.self.peerId, responder: raw.peerId })
    await hand.read()
    hand.send({ ...helloOf(self), chosen: CHOSEN })
    expect(await verdictOf(victim, other)).toEqual(refused('BAD_KEY'))
    await dialled
    expect(victim.of('directory.joined')).toEqual([])
    await raw.stop()
  })

  it('are refused in presence reports', async () => {
    victim.mark()
    const topic = presenceTopic('default')
    // A neighbour that hands on too much that is wrong is not listened to any more: three reports each.
    for (let from = 0; from < weakActors.length; from += 3) {
      const raw = await world.raw(actor(`gossip-${from}`), { gossip: true })
      await raw.connect(victim.address)
      await eventually(() => raw.gossip?.getSubscribers(topic).length, 'a subscriber')
      for (const { self } of weakActors.slice(from, from + 3)) {
        await raw.gossip?.publish(topic, presenceOf(self))
      }
      const done = Math.min(from + 3, weakActors.length)
      await eventually(() => victim.of('presence.refused').length === done, `${done} refusals`)
      await raw.stop()
    }
    expect(victim.of('presence.refused').map(({ code }) => code)).toEqual(WEAK_KEYS.map(() => 'BAD_KEY'))
    expect(victim.of('directory.joined')).toEqual([])
    await expect(victim.peer.find({ agent: 'weak-0' }, { timeoutMs: 1000 })).resolves.toEqual([])
  })

  it.each(weakActors)('are refused in a manifest: $key.name', async ({ self }) => {
    const fields = {
      agent_id: hostileKey.agentId,
      network: 'default',
      serial: 1,
      issued_at: Date.now(),
      expires_at: Date.now() + 100_000,
      description: '',
      capabilities: [capabilityEntry('trap')],
    }
    for (const [document, code] of [
      // Signed by the weak key it names, and naming the weak key but signed by the key of the link.
      [signManifest({ ...fields, key: self.key.publicKey.raw }, self.key), 'BAD_KEY'],
      [signManifest({ ...fields, key: self.key.publicKey.raw }, hostileKey.key), 'BAD_KEY'],
    ] as const) {
      victim.mark()
      const link = await dialLink(hostile, hostileKey, victim.address, { manifest: document })
      await expect(victim.peer.manifest('hostile')).rejects.toMatchObject({ code })
      link.reset()
      await victim.until('link.down')
    }
  })

  it.each(weakActors)('are refused in a certificate: $key.name', ({ key }) => {
    const validity = { network: 'default', agent_id: 'weak', serial: 1, not_before: 0, not_after: Date.now() + 100_000 }
    const issuer = actor('issuer').key
    const instance = signCertificate({ kind: 'instance', ...validity, instance_key: key.raw }, issuer)
    const organisation = signCertificate(
      { kind: 'organisation', ...validity, agent_key: key.raw, team: 'ops', roles: [] },
      issuer,
    )
    for (const certificate of [instance, organisation]) {
      expect(() => openCertificate(certificate, issuer.publicKey, Date.now())).toThrow(
        expect.objectContaining({ code: 'BAD_KEY' }),
      )
    }
  })

  it.each(weakActors)('are refused in an allow list: $key.name', async ({ key, self }) => {
    const listed = { agent_id: self.agentId, key: toBase64url(key.raw) }
    const file = join(world.place.path, `${self.agentId}.json`)
    writeFileSync(file, JSON.stringify({ agents: [listed] }))
    for (const allow of [file, [listed]]) {
      const peer = createPeer({
        agentId: 'lister',
        preset: 'none',
        identity: world.place.keyFile(actor('lister')),
        trust: { allow },
      })
      await expect(peer.start()).rejects.toMatchObject({
        code: 'INVALID_TRUST_FILE',
        message: expect.stringContaining('agents[0].key'),
      })
    }
  })

  it('leave nothing behind', async () => {
    victim.mark()
    expect(victim.links).toBe(0)
    expect(victim.served).toEqual([])
    expect(victim.peer.balance()).toMatchObject({ calls: 0 })
    expect(world.escaped).toEqual([])
  })
})
