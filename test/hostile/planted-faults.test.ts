import { createPublicKey, randomBytes, verify } from 'node:crypto'
import type { PublicKey } from '@hermes-peer/protocol'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Actor, actor } from './actors.ts'
import { eventually, within } from './eventually.ts'
import { type Attack, falseProof, relay, sayHello } from './handshake-attacks.ts'
import { handHandshake, helloOf, proofOf } from './raw-handshake.ts'
import { capabilityEntry, dialLink } from './raw-link.ts'
import { type Scene, scene } from './scene.ts'
import { mistaking, opening, peerOver } from './seams.ts'
import { refused, verdictOf } from './verdict.ts'
import { WEAK_KEYS, weakActor, weakTransportKey } from './weak-keys.ts'

/** What is broken in the victim while one test runs. */
const broken = vi.hoisted(() => ({
  transcripts: false,
  roles: false,
  signatures: false,
  payloads: false,
  keys: false,
  memory: false,
  answers: false,
}))

vi.mock('@hermes-peer/protocol', async (original) => {
  const real = await original<typeof import('@hermes-peer/protocol')>()
  const verifyTranscript: typeof real.verifyTranscript = (what, context, signature, key) => {
    const { initiator, responder } = context
    if (broken.transcripts) return true
    const sound = real.verifyTranscript(what, context, signature, key)
    if (!broken.roles) return sound
    return (
      sound || real.verifyTranscript(what, { ...context, initiator: responder, responder: initiator }, signature, key)
    )
  }
  return {
    ...real,
    verifyTranscript,
    verifyEnvelope: ((frame, key, memory) =>
      broken.signatures
        ? real.leafOf(frame.header)
        : real.verifyEnvelope(frame, key, memory)) as typeof real.verifyEnvelope,
    verifyPayload: ((header, parts) => {
      if (!broken.payloads) real.verifyPayload(header, parts)
    }) as typeof real.verifyPayload,
    publicKey: ((raw) =>
      broken.keys ? unchecked(raw, real.fingerprintOf(raw)) : real.publicKey(raw)) as typeof real.publicKey,
  }
})

vi.mock('../../packages/peer/src/delivery/dedup.ts', async (original) => {
  const real = await original<typeof import('../../packages/peer/src/delivery/dedup.ts')>()
  const createDedup: typeof real.createDedup = (options) => {
    const dedup = real.createDedup(options)
    const { find } = dedup
    dedup.find = (sender, id) => (broken.memory ? undefined : find.call(dedup, sender, id))
    return dedup
  }
  return { ...real, createDedup }
})

vi.mock('../../packages/peer/src/delivery/window.ts', async (original) => {
  const real = await original<typeof import('../../packages/peer/src/delivery/window.ts')>()
  const createWindow: typeof real.createWindow = (options) => {
    const window = real.createWindow(options)
    const { offer } = window
    window.offer = (sequence, bytes, ordered, item) => {
      if (!broken.memory || sequence >= window.next) return offer.call(window, sequence, bytes, ordered, item)
      options.admit(item)
      return 'admitted'
    }
    return window
  }
  return { ...real, createWindow }
})

vi.mock('../../packages/peer/src/calls/pending.ts', async (original) => {
  const real = await original<typeof import('../../packages/peer/src/calls/pending.ts')>()
  const createPending: typeof real.createPending = () => {
    const pending = real.createPending()
    const { add, answer } = pending
    const agents = new Map<string, string>()
    pending.add = (attempt) => {
      agents.set(attempt.leaf, attempt.agentId)
      add.call(pending, attempt)
    }
    pending.answer = (incoming) => {
      const from = broken.answers ? agents.get(incoming.header.in_reply_to ?? '') : undefined
      if (from === undefined) return answer.call(pending, incoming)
      const link = { ...incoming.link, remote: { ...incoming.link.remote, agentId: from } }
      return answer.call(pending, { ...incoming, from, link })
    }
    return pending
  }
  return { ...real, createPending }
})

/** Takes any 32 bytes for a key, and leaves the rest to Node. */
function unchecked(raw: Uint8Array, fingerprint: string): PublicKey {
  const key = createPublicKey({
    format: 'jwk',
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw).toString('base64url') },
  })
  return { raw, fingerprint, verify: (message, signature) => verify(null, message, key, signature) }
}

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')
const otherKey = actor('other')
const LINKED = { linked: true }

async function attacked(
  world: Scene,
  options: Partial<Parameters<Scene['peer']>[0]> = {},
  self: Actor = hostileKey,
): Promise<Attack> {
  const victim = await world.peer({ as: victimKey, allow: [hostileKey, honestKey, otherKey], ...options })
  return { victim, raw: await world.raw(self), self, other: honestKey }
}

/** Breaks the victim, and says what the same attack comes to before and after. */
async function beforeAndAfter<T>(fault: keyof typeof broken, run: () => Promise<T>): Promise<{ sound: T; broken: T }> {
  const sound = await run()
  broken[fault] = true
  try {
    return { sound, broken: await run() }
  } finally {
    broken[fault] = false
  }
}

describe('a victim with a planted fault is caught by', () => {
  afterEach(() => {
    for (const fault of Object.keys(broken) as (keyof typeof broken)[]) broken[fault] = false
  })

  it('the check for strangers: its trust admits everybody', async () => {
    const everybody = {
      judge: () => ({ admitted: true }) as const,
      known: () => undefined,
      describe: () => 'everybody',
    }
    const stranger = actor('stranger')
    const sound = await attacked(scene(), {}, stranger)
    expect(await sayHello(sound, helloOf(stranger))).toEqual(refused('NOT_ALLOWED'))
    const open = await attacked(scene(), { make: peerOver(opening(() => ({ trust: everybody }))) }, stranger)
    expect(await falseProof(open, {})).toEqual(LINKED)
  })

  it('the check of claimed names: its trust looks at names only', async () => {
    const byName = { judge: () => ({ admitted: true }) as const, known: () => undefined, describe: () => 'by name' }
    const thief: Actor = { ...hostileKey, agentId: 'honest' }
    const sound = await attacked(scene(), {}, thief)
    expect(await sayHello(sound, helloOf(thief))).toEqual(refused('IDENTITY_MISMATCH'))
    const loose = await attacked(scene(), { make: peerOver(opening(() => ({ trust: byName }))) }, thief)
    expect(await falseProof(loose, {})).toEqual(LINKED)
    expect(loose.victim.of('link.up')).toMatchObject([{ agentId: 'honest' }])
  })

  it('the false proofs: transcripts are not verified', async () => {
    const verdicts = await beforeAndAfter('transcripts', async () =>
      falseProof(await attacked(scene()), { sign: () => randomBytes(64) }),
    )
    expect(verdicts).toEqual({ sound: refused('HANDSHAKE_REFUSED'), broken: LINKED })
  })

  it('the exchanged roles: the transcript does not bind who is who', async () => {
    const verdicts = await beforeAndAfter('roles', async () =>
      falseProof(await attacked(scene()), {
        bound: (binding) => ({ ...binding, initiator: binding.responder, responder: binding.initiator }),
      }),
    )
    expect(verdicts).toEqual({ sound: refused('HANDSHAKE_REFUSED'), broken: LINKED })
  })

  it('the man in the middle: peer ids are not those of the connection', async () => {
    // Each takes the man in the middle for the other: the whole handshake goes through him, byte by byte.
    const names = {
      victim: new Map([[hostileKey.peerId, honestKey.peerId]]),
      far: new Map([[hostileKey.peerId, victimKey.peerId]]),
    }
    const over = (mistakes: ReadonlyMap<string, string>) => ({
      make: peerOver(opening(({ network }) => ({ network: mistaking(network, mistakes) }))),
    })
    const meet = async (victimOver: object, farOver: object) => {
      const world = scene()
      const attack = await attacked(world, victimOver)
      return relay(attack, await world.peer({ as: honestKey, allow: [victimKey, hostileKey], ...farOver }))
    }
    expect(await meet({}, {})).toMatchObject({ atVictim: { linked: false }, atOther: { linked: false } })
    // One of them alone is enough to notice.
    expect(await meet(over(names.victim), {})).toMatchObject({
      atVictim: { linked: false },
      atOther: { linked: false },
    })
    expect(await meet({}, over(names.far))).toMatchObject({ atVictim: { linked: false }, atOther: { linked: false } })
    expect(await meet(over(names.victim), over(names.far))).toEqual({ atVictim: LINKED, atOther: LINKED })
  })

  it('the forged envelopes: signatures are not verified', async () => {
    const served = await beforeAndAfter('signatures', async () => {
      const { victim, raw } = await attacked(scene())
      const link = await dialLink(raw, hostileKey, victim.address)
      link.request('echo', 'forged', { sign: () => randomBytes(64) })
      await eventually(
        () => victim.of('envelope.refused')[0] ?? victim.of('handler.ended')[0],
        'the end of the forgery',
      )
      return victim.served
    })
    expect(served).toEqual({ sound: [], broken: ['forged'] })
  })

  it('the changed payloads: the payload is not bound', async () => {
    const served = await beforeAndAfter('payloads', async () => {
      const { victim, raw } = await attacked(scene())
      const link = await dialLink(raw, hostileKey, victim.address)
      link.request('echo', 'signed', { swapPayload: () => Buffer.from('{"input":"forged"}') })
      await eventually(
        () => victim.of('envelope.refused')[0] ?? victim.of('handler.ended')[0],
        'the end of the forgery',
      )
      return victim.served
    })
    expect(served).toEqual({ sound: [], broken: ['forged'] })
  })

  it('the weak keys: keys are not looked at', async () => {
    const key = WEAK_KEYS[0] as (typeof WEAK_KEYS)[0]
    const self = weakActor('weak', key)
    const verdicts = await beforeAndAfter('keys', async () => {
      const world = scene()
      const victim = await world.peer({ as: victimKey, allow: [self] })
      const raw = await world.raw(await weakTransportKey(key))
      const stream = await raw.open(victim.address)
      const hand = handHandshake(stream, self, { initiator: raw.peerId, responder: victim.self.peerId })
      hand.send(helloOf(self))
      if (await hand.read().catch(() => undefined)) hand.sendSigned('proof', proofOf())
      const end = await eventually(() => victim.of('link.up')[0] ?? victim.of('handshake.refused')[0], 'an end')
      return end.type === 'link.up' ? 'linked' : end.code
    })
    // Anybody can be that agent, as the signature is forged.
    expect(verdicts).toEqual({ sound: 'BAD_KEY', broken: 'linked' })
  })

  it('the replays: nothing is remembered', async () => {
    const served = await beforeAndAfter('memory', async () => {
      const { victim, raw } = await attacked(scene())
      const link = await dialLink(raw, hostileKey, victim.address)
      const asked = link.request('echo', 'once')
      await link.answerTo(asked)
      link.stream.send(asked.frame)
      await link.answerTo(asked)
      return victim.served
    })
    expect(served).toEqual({ sound: ['once'], broken: ['once', 'once'] })
  })

  it('the swapped answers: whoever answers is believed', async () => {
    const values = await beforeAndAfter('answers', async () => {
      const world = scene()
      const { victim, raw } = await attacked(world)
      const link = await dialLink(raw, hostileKey, victim.address, { capabilities: [capabilityEntry('work')] })
      const other = await dialLink(await world.raw(otherKey), otherKey, victim.address)
      await victim.until('directory.changed', ({ agentId }) => agentId === 'hostile')
      const call = victim.peer.callDynamic('work', 1, { agent: 'hostile' })
      const asked = await link.next(({ header }) => header.target_capability === 'work')
      other.answer(asked, 'stolen')
      await other.answerTo(other.request('echo', 'settled'))
      link.answer(asked, 'true')
      return within(10_000, 'the answer', call)
    })
    expect(values).toEqual({ sound: 'true', broken: 'stolen' })
  })

  it('the skewed clocks: any offset is taken', async () => {
    const hello = helloOf(hostileKey, { time: Date.now() - 3_600_000 })
    expect(await sayHello(await attacked(scene()), hello)).toEqual(refused('CLOCK_SKEW'))
    const loose = await attacked(scene(), { tuning: { maxClockOffsetMs: 1e12 } })
    const stream = await loose.raw.open(loose.victim.address)
    const hand = handHandshake(stream, hostileKey, { initiator: loose.raw.peerId, responder: victimKey.peerId })
    hand.send(helloOf(hostileKey, { time: Date.now() - 3_600_000 }))
    await hand.read()
    hand.sendSigned('proof', proofOf())
    expect(await verdictOf(loose.victim, stream)).toEqual(LINKED)
  })

  it('the stalled handshakes: they never end by themselves', async () => {
    const honestCame = async (handshakeTimeoutMs: number, withinMs: number) => {
      const world = scene()
      const { victim, raw } = await attacked(world, { tuning: { handshakeTimeoutMs, pendingHandshakes: 1 } })
      await raw.open(victim.address)
      await world.peer({
        as: honestKey,
        allow: [victimKey],
        bootstrap: [victim.address],
        tuning: { handshakeTimeoutMs: 1500, reconnectMs: 50 },
      })
      return victim.until('link.up', undefined, withinMs).then(
        () => true,
        () => false,
      )
    }
    expect(await honestCame(300, 15_000)).toBe(true)
    expect(await honestCame(60_000, 1500)).toBe(false)
  })
})
