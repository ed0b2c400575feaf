import { createHash, randomBytes } from 'node:crypto'
import {
  decodeHeader,
  leafOf,
  merkleRoot,
  openCertificate,
  openDelegation,
  openEndorsement,
  openManifest,
  openPresence,
  presenceTopic,
  publicKey,
  toBase64url,
  verifyBatch,
  verifyEnvelope,
  verifyHops,
  verifyTranscript,
} from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { craft, domain } from '../craft.ts'
import { eventually } from '../eventually.ts'
import { challengeOf, falseProof, welcomeOf, whenDialled } from '../handshake-attacks.ts'
import { signedOf } from '../raw-handshake.ts'
import { capabilityEntry, dialLink, manifestOf } from '../raw-link.ts'
import { partOf, varint } from '../raw-stream.ts'
import { scene } from '../scene.ts'
import { PATIENCE_MS } from '../tier.ts'
import { refused } from '../verdict.ts'

/** The list of wire.md, "Signing". */
const THINGS = [
  'envelope',
  'batch',
  'transcript',
  'proof',
  'welcome',
  'hop',
  'manifest',
  'presence',
  'certificate',
  'revocation',
  'endorsement',
  'delegation',
  'flight',
] as const
type Thing = (typeof THINGS)[number]

const victimKey = actor('victim')
const hostileKey = actor('hostile')
const { key } = hostileKey

/** The bytes that each thing signs behind its domain, taken from a sound example of it. */
const sender = { self: hostileKey, to: 'victim', toEpoch: 1, epoch: 1, sequence: 1 }
const envelope = craft(sender, { target_capability: 'echo', payload: { input: 1 } })
const leaf = Buffer.from(envelope.leaf, 'hex')
const binding = {
  network: 'default',
  protocol: '/hermes/link/1.0.0',
  initiator: 'a',
  responder: 'b',
  roles: ['I', 'R'] as const,
  messages: [Buffer.from([1, 0x7b])],
}
const hop = { forwarder: 'hostile', next: 'victim', index: 0, timestamp: 1, budget_ms: 1, previous: envelope.leaf }
const endorsement = {
  network: 'test',
  endorser: 'hostile',
  key: Buffer.from(key.publicKey.raw).toString('base64url'),
  agent_id: 'victim',
  capability: 'echo',
  issued_at: 1,
  expires_at: 2,
}
const presence = {
  agent_id: 'hostile',
  key: toBase64url(key.publicKey.raw),
  network: 'default',
  epoch: 1,
  counter: 1,
  state: 'up',
  addresses: [],
  capabilities: [],
  load: 0,
  queue_depth: 0,
  success_rate_15m: 1000,
  manifest_serial: 1,
}
const certificate = {
  kind: 'instance',
  network: 'default',
  agent_id: 'hostile',
  serial: 1,
  not_before: 0,
  not_after: 9_999_999_999_999,
  instance_key: toBase64url(actor('instance').key.publicKey.raw),
}
const manifestBody = (() => {
  const document = Buffer.from(manifestOf(hostileKey))
  return document.subarray(document.length < 130 ? 1 : 2, document.length - 64)
})()
const json = (value: unknown) => Buffer.from(JSON.stringify(value))
const transcript = signedOf('proof', binding).subarray('hermes-peer/proof/1'.length + 1)
const delegation = {
  network: 'default',
  from: 'hostile',
  key: Buffer.from(key.publicKey.raw).toString('base64url'),
  to: 'victim',
  capabilities: ['echo'],
  constraints: {},
  issued_at: 1,
  expires_at: 2,
}
const anyDocument = partOf(json({ agent_id: 'hostile', serial: 1 }))

const BODIES: Record<Thing, Uint8Array> = {
  envelope: partOf(envelope.header),
  batch: Buffer.concat([varint(1), merkleRoot([leaf])]),
  transcript,
  proof: transcript,
  welcome: transcript,
  hop: partOf(json(hop)),
  manifest: partOf(manifestBody),
  presence: partOf(json(presence)),
  certificate: partOf(json(certificate)),
  revocation: anyDocument,
  endorsement: partOf(json(endorsement)),
  delegation: partOf(json(delegation)),
  flight: anyDocument,
}

const holds = (verify: () => unknown): boolean => {
  try {
    return verify() !== false
  } catch {
    return false
  }
}
const contextOf = ({ roles: _, ...context }: typeof binding) => context
const documentOf = (body: Uint8Array, signature: Uint8Array) => Buffer.concat([body, signature])

/** What this version verifies: whether a signature is taken for that thing. */
const VERIFIERS: Partial<Record<Thing, (signature: Uint8Array) => boolean>> = {
  envelope: (signature) =>
    holds(() =>
      verifyEnvelope(
        { tag: 0, header: envelope.header, payload: envelope.payload, signature, hops: [] },
        key.publicKey,
      ),
    ),
  batch: (signature) => verifyBatch([leaf], signature, key.publicKey),
  proof: (signature) => verifyTranscript('proof', contextOf(binding), signature, key.publicKey),
  welcome: (signature) => verifyTranscript('welcome', contextOf(binding), signature, key.publicKey),
  hop: (signature) =>
    holds(() =>
      verifyHops({
        header: {
          ...decodeHeader(envelope.header),
          sender: { agent_id: 'origin', key: '' },
          recipient: { agent_id: 'hostile' },
        },
        leaf: leafOf(envelope.header),
        hops: [{ body: json(hop), signature }],
        neighbour: 'hostile',
        self: 'victim',
        keyOf: () => key.publicKey,
      }),
    ),
  manifest: (signature) => holds(() => openManifest(documentOf(BODIES.manifest, signature), key.publicKey)),
  presence: (signature) => holds(() => openPresence(documentOf(BODIES.presence, signature))),
  endorsement: (signature) => holds(() => openEndorsement(documentOf(BODIES.endorsement, signature))),
  certificate: (signature) => holds(() => openCertificate(documentOf(BODIES.certificate, signature), key.publicKey, 1)),
  delegation: (signature) =>
    holds(() =>
      openDelegation(documentOf(BODIES.delegation, signature), {
        network: 'default',
        now: 1,
        aheadMs: 0,
        lateMs: 0,
        keyOf: () => key.publicKey,
      }),
    ),
}

const signAs = (thing: Thing, body: Uint8Array) => key.sign(Buffer.concat([domain(thing), body]))

describe('a signature under one domain', () => {
  const verified = Object.keys(VERIFIERS) as Thing[]

  it('is made over different bytes for each of the 13 things, whatever is signed', () => {
    const fresh = randomBytes(32)
    const all = THINGS.map((thing) => Buffer.concat([domain(thing), fresh]).toString('hex'))
    expect(new Set(all).size).toBe(13)
    // None is the beginning of another one: a longer domain cannot be read as a shorter one with data.
    for (const one of THINGS)
      for (const other of THINGS) {
        if (one !== other) expect(domainText(other).startsWith(domainText(one))).toBe(false)
      }
  })

  it.each(verified)('%s: holds for what it was made for, and all 12 others are refused', (thing) => {
    const verify = VERIFIERS[thing] as (signature: Uint8Array) => boolean
    const verdicts = THINGS.map((other) => [other, verify(signAs(other, BODIES[thing]))])
    expect(verdicts).toEqual(THINGS.map((other) => [other, other === thing]))
  })

  it.each(verified)('%s: the very signature of each other thing is refused', (thing) => {
    const verify = VERIFIERS[thing] as (signature: Uint8Array) => boolean
    for (const other of THINGS)
      if (other !== thing) expect([other, verify(signAs(other, BODIES[other]))]).toEqual([other, false])
  })

  it('all pairs: no signature holds for the bytes of any other thing', () => {
    const admitted = publicKey(key.publicKey.raw)
    let pairs = 0
    for (const one of THINGS) {
      const signature = signAs(one, BODIES[one])
      expect(admitted.verify(Buffer.concat([domain(one), BODIES[one]]), signature)).toBe(true)
      for (const other of THINGS) {
        if (other === one) continue
        pairs++
        expect(admitted.verify(Buffer.concat([domain(other), BODIES[other]]), signature)).toBe(false)
        expect(admitted.verify(Buffer.concat([domain(other), BODIES[one]]), signature)).toBe(false)
      }
    }
    expect(pairs).toBe(156)
  })

  it('the checker sees a domain that is not bound', () => {
    const unbound = (signature: Uint8Array) =>
      THINGS.some((thing) => key.publicKey.verify(Buffer.concat([domain(thing), BODIES.envelope]), signature))
    expect(THINGS.filter((other) => unbound(signAs(other, BODIES.envelope)))).toHaveLength(13)
  })

  const domainText = (thing: Thing) => Buffer.from(domain(thing)).toString('latin1')
})

describe('over the wire, a hostile peer that signs under the wrong domain', () => {
  const others = (thing: Thing) => THINGS.filter((other) => other !== thing)

  it(
    'is refused in each place where the victim verifies',
    async () => {
      const world = scene()
      const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
      const raw = await world.raw(hostileKey)
      const attack = { victim, raw, self: hostileKey, other: hostileKey }

      for (const other of others('proof'))
        expect(await falseProof(attack, { domain: other })).toEqual(refused('HANDSHAKE_REFUSED'))
      for (const other of others('welcome')) {
        const verdict = await whenDialled(attack, async (hand) => {
          hand.send(challengeOf(hostileKey))
          await hand.readSigned()
          hand.sendSigned('welcome', welcomeOf(), { domain: other })
        })
        expect(verdict).toEqual(refused('HANDSHAKE_REFUSED'))
      }

      const link = await dialLink(raw, hostileKey, victim.address)
      victim.mark()
      for (const other of others('envelope')) {
        link.request('echo', other, {
          sign: (signed) => signAs(other, signed.subarray('hermes-peer/envelope/1'.length + 1)),
        })
      }
      await eventually(() => victim.of('envelope.refused').length === 12, 'twelve refusals')
      expect(new Set(victim.of('envelope.refused').map(({ code }) => code))).toEqual(new Set(['BAD_SIGNATURE']))

      // A batch of one, proven by tag 1: under its own domain it is taken.
      link.reset()
      await victim.until('link.down')
      const batch = await dialLink(raw, hostileKey, victim.address)
      victim.mark()
      for (const other of [...others('batch'), 'batch'] as Thing[]) {
        const sequence = other === 'batch' ? 1 : 1000
        const one = batch.craft({ target_capability: 'echo', payload: { input: `batch ${other}` }, sequence })
        const root = createHash('sha256')
          .update(Buffer.alloc(1))
          .update(Buffer.concat([domain('envelope'), partOf(one.header)]))
          .digest()
        const signature = signAs(other, Buffer.concat([varint(1), root]))
        const proof = Buffer.concat([signature, varint(0), varint(1)])
        batch.stream.send(
          partOf(Buffer.concat([Buffer.from([1]), partOf(one.header), partOf(one.payload), proof, Buffer.alloc(1)])),
        )
      }
      await eventually(() => victim.served.includes('batch batch'), 'the one that is sound')
      expect(victim.of('envelope.refused').map(({ code }) => code)).toEqual(others('batch').map(() => 'BAD_PROOF'))
      expect(victim.served).toEqual(['batch batch'])
      batch.reset()
      await victim.until('link.down')

      for (const other of others('manifest')) {
        const body = partOf(manifestBody)
        victim.mark()
        const bad = await dialLink(raw, hostileKey, victim.address, { manifest: documentOf(body, signAs(other, body)) })
        await expect(victim.peer.manifest('hostile')).rejects.toMatchObject({ code: 'BAD_SIGNATURE' })
        bad.reset()
        await victim.until('link.down')
      }
      const sound = await dialLink(raw, hostileKey, victim.address, { capabilities: [capabilityEntry('trap')] })
      await expect(victim.peer.manifest('hostile')).resolves.toMatchObject({ capabilities: [{ name: 'trap' }] })
      sound.reset()
      expect(world.escaped).toEqual([])
    },
    PATIENCE_MS,
  )

  it('is refused in presence reports', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    const body = partOf(json(presence))
    const topic = presenceTopic('default')
    const wrong = others('presence')
    for (let from = 0; from < wrong.length; from += 3) {
      const gossip = await world.raw(actor(`gossip-${from}`), { gossip: true })
      await gossip.connect(victim.address)
      await eventually(() => gossip.gossip?.getSubscribers(topic).length, 'a subscriber')
      for (const other of wrong.slice(from, from + 3))
        await gossip.gossip?.publish(topic, documentOf(body, signAs(other, body)))
      await eventually(() => victim.of('presence.refused').length === from + 3, 'the refusals')
      await gossip.stop()
    }
    expect(new Set(victim.of('presence.refused').map(({ code }) => code))).toEqual(new Set(['BAD_SIGNATURE']))
    expect(victim.of('directory.joined')).toEqual([])
    const gossip = await world.raw(actor('gossip'), { gossip: true })
    await gossip.connect(victim.address)
    await eventually(() => gossip.gossip?.getSubscribers(topic).length, 'a subscriber')
    await gossip.gossip?.publish(topic, documentOf(body, signAs('presence', body)))
    await victim.until('directory.joined', ({ agentId }) => agentId === 'hostile')
    expect(world.escaped).toEqual([])
  })
})
