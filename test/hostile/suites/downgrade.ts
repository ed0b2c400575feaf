import { randomBytes } from 'node:crypto'
import { signCertificate, toBase64url } from '@hermes-peer/protocol'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { type Attack, challengeOf, sayHello, welcomeOf, whenDialled } from '../handshake-attacks.ts'
import { bytesOf, handHandshake, helloOf, type Json, proofOf } from '../raw-handshake.ts'
import { partOf } from '../raw-stream.ts'
import { honest, sharedScene } from '../scene.ts'
import { byTier, PATIENCE_MS } from '../tier.ts'
import { refused, type Verdict, verdictOf } from '../verdict.ts'
import { echo, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')
const foreign = Buffer.from(actor('foreign').key.publicKey.raw).toString('base64url')
const LIFE = { network: 'default', serial: 1, not_before: 0, not_after: 4_000_000_000_000, team: 'ops', roles: [] }
/** What an organisation says of the hostile agent; those who trust none pass it over. */
const CERTIFICATE = toBase64url(
  signCertificate(
    { kind: 'organisation', agent_id: 'hostile', agent_key: hostileKey.key.publicKey.raw, ...LIFE },
    actor('organisation').key,
  ),
)
const TEAM = toBase64url(
  signCertificate(
    { kind: 'team', prefix: 'hostile', team_key: actor('team').key.publicKey.raw, ...LIFE },
    actor('organisation').key,
  ),
)

/** Every field of a hello, changed on the way so that it is still of its form: only the transcript can tell. */
const CHANGED: readonly (readonly [string, string, (hello: Json) => Json])[] = [
  ['versions: a higher one is taken away', 'HANDSHAKE_REFUSED', () => ({ versions: ['1.0'] })],
  ['versions: a higher one is added', 'HANDSHAKE_REFUSED', () => ({ versions: ['1.0', '1.1', '2.0'] })],
  ['versions: their order', 'HANDSHAKE_REFUSED', () => ({ versions: ['1.1', '1.0'] })],
  ['content_types: one is taken away', 'HANDSHAKE_REFUSED', () => ({ content_types: ['application/json'] })],
  ['content_types: all are taken away', 'HANDSHAKE_REFUSED', () => ({ content_types: [] })],
  ['features: one is taken away', 'HANDSHAKE_REFUSED', () => ({ features: [] })],
  ['features: one is added', 'HANDSHAKE_REFUSED', () => ({ features: ['batch', 'more'] })],
  ['network', 'HANDSHAKE_REFUSED', () => ({ network: 'other' })],
  ['nonce', 'HANDSHAKE_REFUSED', () => ({ nonce: randomBytes(32).toString('base64url') })],
  ['agent_id: another that is admitted', 'IDENTITY_MISMATCH', () => ({ agent_id: 'honest' })],
  ['agent_id: one that is not admitted', 'NOT_ALLOWED', () => ({ agent_id: 'nobody' })],
  ['key', 'IDENTITY_MISMATCH', () => ({ key: foreign })],
  ['certificates: one is added', 'HANDSHAKE_REFUSED', () => ({ certificates: [TEAM, CERTIFICATE] })],
  ['certificates: one is taken away', 'HANDSHAKE_REFUSED', () => ({ certificates: [] })],
  ['limits: bytes', 'HANDSHAKE_REFUSED', () => ({ limits: { max_envelope_bytes: 100_000, max_in_flight: 256 } })],
  ['limits: calls', 'HANDSHAKE_REFUSED', () => ({ limits: { max_envelope_bytes: 1_048_576, max_in_flight: 1 } })],
  ['time', 'HANDSHAKE_REFUSED', ({ time }) => ({ time: (time as number) + 1 })],
  ['a field that nobody knows', 'HANDSHAKE_REFUSED', () => ({ extra: 1 })],
]

const CHOICES: readonly (readonly [string, string, (challenge: Json) => Json])[] = [
  ['chosen.version', 'UNSUPPORTED_VERSION', () => ({ chosen: { version: '1.1', content_types: [], features: [] } })],
  [
    'chosen.content_types',
    'HANDSHAKE_REFUSED',
    () => ({ chosen: { version: '1.0', content_types: ['application/json'], features: [] } }),
  ],
  [
    'chosen.features',
    'HANDSHAKE_REFUSED',
    () => ({ chosen: { version: '1.0', content_types: [], features: ['batch'] } }),
  ],
]

/** What is sent in the first place, so that everything can be taken away. */
const OFFER = { versions: ['1.0', '1.1'], features: ['batch'], certificates: [CERTIFICATE] }

const FIELDS = [
  'versions',
  'content_types',
  'features',
  'network',
  'nonce',
  'agent_id',
  'key',
  'certificates',
  'limits',
  'time',
]

/** Values that no field may have. */
const WRONG: readonly unknown[] = [
  undefined,
  null,
  true,
  -1,
  1.5,
  'x y',
  '',
  [1],
  ['x y'],
  {},
  [{}],
  Number.MAX_SAFE_INTEGER,
]

/** A time that is far away is another matter, and content types that a newer peer may know are passed over. */
const EXCEPTIONS: Readonly<Record<string, (value: unknown) => boolean>> = {
  time: (value) => value === Number.MAX_SAFE_INTEGER,
  content_types: (value) => Array.isArray(value) && value[0] === 'x y',
}

describe('a handshake that is changed on its way', () => {
  const world = sharedScene()
  let victim: Victim
  let good: Victim
  let attack: Attack

  beforeAll(async () => {
    victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    good = await honest(world, honestKey, victim)
    attack = { victim, raw: await world.raw(hostileKey), self: hostileKey, other: honestKey }
  })
  afterAll(async () => {
    victim.mark()
    expect(await good.peer.call(echo, 'still here')).toBe('still here')
    expect(victim.links).toBe(1)
    expect(victim.served).toEqual(['still here'])
    expect(victim.of('window.gap')).toEqual([])
    expect(world.escaped).toEqual([])
  })

  /** The victim gets `sent`; the other side believes that it has said `meant`, and signs that. */
  async function helloChanged(change: (hello: Json) => Json): Promise<Verdict> {
    victim.mark()
    const meant = helloOf(hostileKey, OFFER)
    const stream = await attack.raw.open(victim.address)
    const hand = handHandshake(stream, hostileKey, { initiator: attack.raw.peerId, responder: victim.self.peerId })
    hand.send({ ...meant, ...change(meant) })
    hand.binding.messages[0] = partOf(bytesOf(meant))
    const challenge = await hand.read().catch(() => undefined)
    if (challenge) hand.sendSigned('proof', proofOf())
    else return told(stream)
    return verdictOf(victim, stream)
  }

  /** The refusal has been read in the place of the challenge. */
  async function told(stream: Parameters<typeof verdictOf>[1]): Promise<Verdict> {
    const { code } = await victim.until('handshake.refused')
    stream.close()
    return { linked: false, code, told: code }
  }

  async function challengeChanged(change: (challenge: Json) => Json, by: Attack = attack): Promise<Verdict> {
    return whenDialled(by, async (hand) => {
      const meant = challengeOf(hostileKey, OFFER)
      hand.send({ ...meant, ...change(meant) })
      hand.binding.messages[1] = partOf(bytesOf(meant))
      const signed = await hand.readSigned().catch(() => undefined)
      if (signed) hand.sendSigned('welcome', welcomeOf())
    })
  }

  it('is accepted when nothing is changed: the control', async () => {
    expect(await helloChanged(() => ({}))).toEqual({ linked: true })
    for (const connection of attack.raw.connections) connection.abort(new Error('done'))
    await victim.until('link.down')
    // By another one: who has dialled once comes back by itself.
    const dialling = await world.peer({ as: actor('dialling'), allow: [hostileKey] })
    const own = { ...attack, victim: dialling, raw: await world.raw(hostileKey) }
    expect(await challengeChanged(() => ({}), own)).toEqual({ linked: true })
    await dialling.peer.stop()
  })

  it.each(CHANGED)('the hello: %s: refused', async (_, code, change) => {
    const verdict = await helloChanged(change)
    expect(verdict).toMatchObject({ linked: false, code })
  })

  it.each([...CHANGED, ...CHOICES])('the challenge: %s: refused', async (_, code, change) => {
    const verdict = await challengeChanged(change)
    expect(verdict).toMatchObject({ linked: false, code })
  })

  it.each([
    ['epoch', { epoch: 2 }],
    ['next_sequence', { next_sequence: 2 }],
    ['seen_epoch', { seen_epoch: 1 }],
    ['manifest_digest', { manifest_digest: '1'.repeat(64) }],
    ['a field that nobody knows', { extra: 1 }],
  ])('the proof and the welcome: %s: refused', async (_, change) => {
    victim.mark()
    const stream = await attack.raw.open(victim.address)
    const hand = handHandshake(stream, hostileKey, { initiator: attack.raw.peerId, responder: victim.self.peerId })
    hand.send(helloOf(hostileKey))
    await hand.read()
    const meant = proofOf()
    const changed = (body: Json) => ({
      bound: (binding: typeof hand.binding) => ({
        ...binding,
        messages: [...binding.messages.slice(0, -1), partOf(bytesOf(body))],
      }),
    })
    hand.sendSigned('proof', { ...meant, ...change }, changed(meant))
    expect(await verdictOf(victim, stream)).toEqual(refused('HANDSHAKE_REFUSED'))
    const verdict = await whenDialled(attack, async (back) => {
      back.send(challengeOf(hostileKey))
      await back.readSigned()
      const welcome = welcomeOf()
      back.sendSigned('welcome', { ...welcome, ...change }, changed(welcome))
    })
    expect(verdict).toEqual(refused('HANDSHAKE_REFUSED'))
  })

  it.each(FIELDS)('%s: left out, or of another form: refused as malformed', async (field) => {
    for (const value of WRONG) {
      if (EXCEPTIONS[field]?.(value)) continue
      const verdict = await sayHello(attack, { ...helloOf(hostileKey), [field]: value })
      expect([field, value, verdict]).toEqual([field, value, refused('MALFORMED')])
    }
  })

  it.each<[string, string, Json]>([
    ['only a later major version', 'UNSUPPORTED_VERSION', { versions: ['2.0'] }],
    ['only an earlier major version', 'UNSUPPORTED_VERSION', { versions: ['0.9'] }],
    ['no version', 'UNSUPPORTED_VERSION', { versions: [] }],
  ])('%s: refused, and the log names both sides', async (_, code, hello) => {
    expect(await sayHello(attack, helloOf(hostileKey, hello))).toEqual(refused(code))
    const [event] = victim.of('handshake.refused')
    expect(event?.reason).toContain('1.0')
    for (const version of hello.versions as string[]) expect(event?.reason).toContain(version)
  })

  it.each<[string, string, Json]>([
    ['a version that was not offered', 'UNSUPPORTED_VERSION', { version: '2.0', content_types: [], features: [] }],
    ['a feature that was not offered', 'HANDSHAKE_REFUSED', { version: '1.0', content_types: [], features: ['batch'] }],
    [
      'a content type that was not offered',
      'MALFORMED',
      { version: '1.0', content_types: ['text/plain'], features: [] },
    ],
    ['nothing', 'MALFORMED', {}],
  ])('a choice of %s: refused', async (_, code, chosen) => {
    expect(await whenDialled(attack, (hand) => hand.send(challengeOf(hostileKey, { chosen })))).toEqual(refused(code))
  })

  it(
    'any single byte of a hello or a proof that is turned: never a link',
    async () => {
      const rounds = byTier({ test: 24, ci: 100, long: 1000 })
      const bad: string[] = []
      for (let round = 0; round < rounds; round++) {
        victim.mark()
        const hello = bytesOf(helloOf(hostileKey, OFFER))
        const turned = Buffer.from(hello)
        const at = randomBytes(2).readUInt16BE() % turned.length
        turned[at] = (turned[at] as number) ^ (1 << (round % 7))
        const stream = await attack.raw.open(victim.address)
        const hand = handHandshake(stream, hostileKey, { initiator: attack.raw.peerId, responder: victim.self.peerId })
        if (round % 2 === 0) {
          hand.send(turned)
          hand.binding.messages[0] = partOf(hello)
          if (await hand.read().catch(() => undefined)) hand.sendSigned('proof', proofOf())
        } else {
          hand.send(hello)
          await hand.read()
          const proof = Buffer.from(bytesOf(proofOf()))
          const other = Buffer.from(proof)
          other[at % other.length] = (other[at % other.length] as number) ^ (1 << (round % 7))
          hand.sendSigned('proof', other, {
            bound: (binding) => ({ ...binding, messages: [...binding.messages.slice(0, -1), partOf(proof)] }),
          })
        }
        const end = await eventually(() => victim.of('link.up')[0] ?? victim.of('handshake.refused')[0], 'an end')
        if (end.type === 'link.up') bad.push(turned.toString())
        stream.close()
      }
      expect(bad).toEqual([])
    },
    PATIENCE_MS,
  )
})
