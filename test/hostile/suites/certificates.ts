import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Certificate,
  type InstanceCertificate,
  type OrganisationCertificate,
  type SignedDocument,
  type SigningKey,
  signCertificate,
  signDocument,
  signRevocation,
  type TeamCertificate,
  toBase64url,
  toFile,
  trustTopic,
} from '@hermes-peer/protocol'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Actor, actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { type Attack, challengeOf, sayHello, whenDialled } from '../handshake-attacks.ts'
import { helloOf } from '../raw-handshake.ts'
import { dialLink } from '../raw-link.ts'
import { sharedScene } from '../scene.ts'
import { refused } from '../verdict.ts'
import { echo, type Victim } from '../victim.ts'
import { WEAK_KEYS } from '../weak-keys.ts'

const acme = actor('acme').key
const teamKey = actor('team').key
const victimKey = actor('ops/victim')
const honestKey = actor('ops/honest')
const hostileKey = actor('ops/hostile')
/** The same agent at another key of its own. */
const instanceKey: Actor = { ...actor('instance'), agentId: hostileKey.agentId }
const strangerKey = actor('stranger')

const HOUR = 3_600_000
const life = () => ({ network: 'default', serial: 5, not_before: Date.now() - HOUR, not_after: Date.now() + HOUR })

const sign = <C extends Certificate>(base: C, by: SigningKey, changes: Partial<C>): SignedDocument =>
  signCertificate({ ...base, ...changes }, by)
const organisationFor = (who: Actor, changes: Partial<OrganisationCertificate> = {}, by = acme) =>
  sign<OrganisationCertificate>(
    {
      kind: 'organisation',
      agent_id: who.agentId,
      ...life(),
      agent_key: who.key.publicKey.raw,
      team: 'ops',
      roles: [],
    },
    by,
    changes,
  )
const team = (changes: Partial<TeamCertificate> = {}, by = acme) =>
  sign<TeamCertificate>(
    { kind: 'team', ...life(), team: 'ops', team_key: teamKey.publicKey.raw, prefix: 'ops', roles: [] },
    by,
    changes,
  )
const instance = (changes: Partial<InstanceCertificate> = {}, by = hostileKey.key) =>
  sign<InstanceCertificate>(
    { kind: 'instance', agent_id: 'ops/hostile', ...life(), instance_key: instanceKey.key.publicKey.raw },
    by,
    changes,
  )
const weakInstance = (raw: Uint8Array) =>
  signDocument(
    'certificate',
    { kind: 'instance', agent_id: 'ops/hostile', ...life(), instance_key: toBase64url(raw) },
    hostileKey.key,
  )

/** What a hello says when the hostile agent shows these. */
const showing = (certificates: readonly Uint8Array[], agent = 'ops/hostile') => ({
  agent_id: agent,
  key: toBase64url(hostileKey.key.publicKey.raw),
  certificates: certificates.map(toBase64url),
})

const own = () => organisationFor(hostileKey)

/** By the transport key of the agent itself, and by that of its instance. */
const WRONG = (
  [
    ['the chain stripped', 'NOT_ALLOWED', hostileKey, () => []],
    ['the organisation stripped', 'NOT_ALLOWED', instanceKey, () => [instance()]],
    ['the instance stripped', 'IDENTITY_MISMATCH', instanceKey, () => [own()]],
    ['its own certificate under another id', 'IDENTITY_MISMATCH', hostileKey, () => [own()], 'ops/nobody'],
    [
      'the certificate of another agent',
      'IDENTITY_MISMATCH',
      hostileKey,
      () => [organisationFor(honestKey)],
      'ops/honest',
    ],
    ['its own instance under another id', 'IDENTITY_MISMATCH', instanceKey, () => [own(), instance()], 'ops/nobody'],
    [
      'an instance key that is not the one of its connection',
      'IDENTITY_MISMATCH',
      strangerKey,
      () => [own(), instance()],
    ],
    ['another network', 'NOT_ALLOWED', hostileKey, () => [organisationFor(hostileKey, { network: 'prod' })]],
    ['an instance of another network', 'WRONG_NETWORK', instanceKey, () => [own(), instance({ network: 'prod' })]],
    [
      'what has run out',
      'NOT_ALLOWED',
      hostileKey,
      () => [organisationFor(hostileKey, { not_after: Date.now() - HOUR })],
    ],
    ['an instance that has run out', 'EXPIRED', instanceKey, () => [own(), instance({ not_after: Date.now() - HOUR })]],
    ['an instance not valid yet', 'EXPIRED', instanceKey, () => [own(), instance({ not_before: Date.now() + HOUR })]],
    ['another organisation', 'NOT_ALLOWED', hostileKey, () => [organisationFor(hostileKey, {}, strangerKey.key)]],
    ['itself as the organisation', 'NOT_ALLOWED', hostileKey, () => [organisationFor(hostileKey, {}, hostileKey.key)]],
    ['an instance that signed itself', 'BAD_SIGNATURE', instanceKey, () => [own(), instance({}, instanceKey.key)]],
    [
      'a team outside its prefix',
      'NOT_ALLOWED',
      hostileKey,
      () => [team({ prefix: 'billing' }), organisationFor(hostileKey, {}, teamKey)],
    ],
    [
      'a role that the team may not give',
      'NOT_ALLOWED',
      hostileKey,
      () => [team(), organisationFor(hostileKey, { roles: ['admin'] }, teamKey)],
    ],
    ['a team without its certificate', 'NOT_ALLOWED', hostileKey, () => [organisationFor(hostileKey, {}, teamKey)]],
    ['another order', 'MALFORMED', instanceKey, () => [instance(), own()]],
    [
      'too many',
      'MALFORMED',
      instanceKey,
      () => [team(), organisationFor(hostileKey, {}, teamKey), instance(), instance()],
    ],
    ['something else', 'MALFORMED', hostileKey, () => [new Uint8Array(100)]],
  ] as [string, string, Actor, () => readonly Uint8Array[], string?][]
).map(([name, code, self, certificates, agent]) => ({ name, code, self, certificates, agent }))

describe('certificates in a handshake', () => {
  const world = sharedScene()
  let victim: Victim
  let good: Victim
  const attackers = new Map<Actor, Attack>()

  beforeAll(async () => {
    const certified = (of: Actor): string => {
      const path = join(world.place.path, `${of.agentId.replace('/', '-')}.cert`)
      writeFileSync(path, JSON.stringify(toFile(organisationFor(of))))
      return path
    }
    const trust = { org: toBase64url(acme.publicKey.raw) }
    const tuning = { instanceOverlapMs: 1 }
    victim = await world.peer({ as: victimKey, certificate: certified(victimKey), trust, tuning })
    const bootstrap = [victim.address]
    good = await world.peer({ as: honestKey, certificate: certified(honestKey), trust, bootstrap })
    await victim.until('link.up')
    for (const self of [hostileKey, instanceKey, strangerKey]) {
      attackers.set(self, { victim, raw: await world.raw(self, { gossip: true }), self, other: honestKey })
    }
  })

  const by = (self: Actor): Attack => attackers.get(self) ?? expect.fail('no such attacker')
  /** The honest link stands, and only that agent is on record. */
  const untouched = async () => {
    expect(await good.peer.call(echo, 'x')).toBe('x')
    expect(victim.links).toBe(1)
    expect(victim.of('directory.joined')).toEqual([])
    expect(world.escaped).toEqual([])
    for (const { raw } of attackers.values())
      for (const connection of raw.connections) connection.abort(new Error('done'))
  }

  it.each(WRONG)(
    'threat: forged sender — $name, by the one who dials: $code',
    async ({ code, self, certificates, agent }) => {
      const attack = by(self)
      expect(await sayHello(attack, helloOf(self, showing(certificates(), agent)))).toEqual(refused(code))
      await untouched()
    },
  )

  it.each(WRONG)(
    'threat: forged sender — $name, by the one who is dialled: $code',
    async ({ code, self, certificates, agent }) => {
      const attack = by(self)
      const verdict = await whenDialled(attack, (hand) => hand.send(challengeOf(self, showing(certificates(), agent))))
      expect(verdict).toMatchObject({ linked: false, code })
      await untouched()
    },
  )

  it.each(WEAK_KEYS)('threat: forged sender — an instance key anybody can sign with: $name', async ({ raw }) => {
    expect(await sayHello(by(hostileKey), helloOf(hostileKey, showing([own(), weakInstance(raw)])))).toEqual(
      refused('BAD_KEY'),
    )
  })

  it('the control: the whole chain is admitted; the key of the instance signs, and not that of the agent', async () => {
    const { raw } = by(instanceKey)
    const chain = [team(), organisationFor(hostileKey, {}, teamKey), instance()]
    const link = await dialLink(raw, instanceKey, victim.address, { hello: showing(chain) })
    const answer = await link.answerTo(link.request('echo', 'well signed'))
    expect(answer.payload).toMatchObject({ output: 'well signed' })
    victim.mark()
    link.send({
      message_type: 'request',
      target_capability: 'echo',
      payload: { input: 1 },
      sign: (m) => hostileKey.key.sign(m),
    })
    await victim.until('envelope.refused', ({ code }) => code === 'BAD_SIGNATURE')
    link.send({
      message_type: 'request',
      target_capability: 'echo',
      payload: { input: 1 },
      sender: { agent_id: 'ops/hostile', key: hostileKey.key.publicKey.fingerprint },
      sign: (m) => hostileKey.key.sign(m),
    })
    await victim.until('envelope.refused', ({ code }) => code === 'WRONG_SENDER')
    link.reset()
    await victim.until('link.down')
  })

  it('threat: old key — a lower serial than one that was seen is refused', async () => {
    victim.mark()
    const older = { serial: 4 }
    expect(await sayHello(by(instanceKey), helloOf(instanceKey, showing([own(), instance(older)])))).toEqual(
      refused('NOT_ALLOWED'),
    )
    // The agent key itself counts as serial 0.
    expect(await sayHello(by(hostileKey), helloOf(hostileKey, showing([own()])))).toEqual(refused('NOT_ALLOWED'))
  })

  it('F-32 a second key that the organisation certifies for a name in use is refused, and both are named', async () => {
    const twin: Actor = { ...strangerKey, agentId: 'ops/honest' }
    const certificate = organisationFor(twin, { serial: 99 })
    const hello = helloOf(twin, { certificates: [toBase64url(certificate)] })
    expect(await sayHello(by(strangerKey), hello)).toEqual(refused('IDENTITY_MISMATCH'))
    const { reason } = victim.of('handshake.refused').at(-1) ?? expect.fail('nothing was refused')
    for (const one of [twin, honestKey]) expect(reason).toContain(one.key.publicKey.fingerprint)
  })

  it('threat: stolen key — revocations that strangers spread change nothing, and cost their neighbour its place', async () => {
    const attack = by(strangerKey)
    const topic = trustTopic('default')
    await attack.raw.connect(victim.address)
    await eventually(() => attack.raw.gossip?.getSubscribers(topic).length, 'a subscriber')
    const fields = {
      network: 'default',
      agent_id: 'ops/honest',
      key: honestKey.key.publicKey.fingerprint,
      serial: 1,
      reason: '',
    }
    const forged = signRevocation(fields, acme).map((byte, at, all) => (at === all.length - 1 ? byte ^ 1 : byte))
    victim.mark()
    for (const document of [
      signRevocation(fields, strangerKey.key),
      signRevocation({ ...fields, certificates: [own()] }, hostileKey.key),
      forged,
    ]) {
      await attack.raw.gossip?.publish(topic, document)
    }
    await victim.until('presence.refused', ({ code }) => code === 'BAD_SIGNATURE')
    expect(victim.of('identity.revoked')).toEqual([])
    expect(await good.peer.call(echo, 'y')).toBe('y')
  })
})
