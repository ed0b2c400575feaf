import { randomBytes } from 'node:crypto'
import { presenceTopic, signDocument, toBase64url } from '@hermes-peer/protocol'
import { beforeAll, describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { type Draft, newId } from '../craft.ts'
import { eventually } from '../eventually.ts'
import { sayHello } from '../handshake-attacks.ts'
import { presenceOf } from '../presence.ts'
import { helloOf } from '../raw-handshake.ts'
import { dialLink, type RawLink } from '../raw-link.ts'
import type { RawPeer } from '../raw-peer.ts'
import { honest, sharedScene } from '../scene.ts'
import { refused } from '../verdict.ts'
import { echo, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')

describe('F-01 claimed name not bound to the key that signs', () => {
  const world = sharedScene()
  let victim: Victim
  let good: Victim
  let raw: RawPeer
  let link: RawLink

  beforeAll(async () => {
    victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    good = await honest(world, honestKey, victim)
    raw = await world.raw(hostileKey)
    link = await dialLink(raw, hostileKey, victim.address)
    await victim.until('directory.changed', ({ agentId }) => agentId === 'honest').catch(() => undefined)
  })

  /** The honest agent’s entry, its sequence and its link are as they were. */
  async function untouched(): Promise<void> {
    const before = victim.served.length
    const value = randomBytes(4).toString('hex')
    expect(await good.peer.call(echo, value)).toBe(value)
    expect(victim.served.slice(before)).toEqual([value])
    expect(victim.of('window.gap')).toEqual([])
    expect(victim.links).toBe(2)
    expect(victim.of('link.down')).toEqual([])
    expect(world.escaped).toEqual([])
  }

  it('a hello in the name of another is refused', async () => {
    const other = actor('other key')
    const stranger = await world.raw(other)
    const verdict = await sayHello(
      { victim, raw: stranger, self: other, other: honestKey },
      helloOf(other, { agent_id: 'honest' }),
    )
    expect(verdict).toEqual(refused('IDENTITY_MISMATCH'))
    victim.mark()
    await untouched()
  })

  const forged: readonly (readonly [string, string, () => Draft])[] = [
    [
      'names another sender, with its own fingerprint',
      'WRONG_SENDER',
      () => ({ sender: { agent_id: 'honest', key: hostileKey.key.publicKey.fingerprint } }),
    ],
    [
      'names another sender, with the fingerprint of that one',
      'WRONG_SENDER',
      () => ({ sender: { agent_id: 'honest', key: honestKey.key.publicKey.fingerprint } }),
    ],
    [
      'names its own sender with the fingerprint of another',
      'WRONG_SENDER',
      () => ({ sender: { agent_id: 'hostile', key: honestKey.key.publicKey.fingerprint } }),
    ],
    [
      'names the victim as the sender',
      'WRONG_SENDER',
      () => ({ sender: { agent_id: 'victim', key: victimKey.key.publicKey.fingerprint } }),
    ],
    ['has no signature', 'BAD_SIGNATURE', () => ({ sign: () => Buffer.alloc(64) })],
    ['has a random signature', 'BAD_SIGNATURE', () => ({ sign: () => randomBytes(64) })],
    ['is signed by another key', 'BAD_SIGNATURE', () => ({ sign: (signed) => actor('stranger').key.sign(signed) })],
    [
      'is signed by the key of another agent that is admitted',
      'BAD_SIGNATURE',
      () => ({ sign: (signed) => honestKey.key.sign(signed) }),
    ],
    [
      'has the signature in another spelling (S + L)',
      'BAD_SIGNATURE',
      () => ({ sign: (signed) => malleated(hostileKey.key.sign(signed)) }),
    ],
    [
      'has another payload than was signed',
      'PAYLOAD_MISMATCH',
      () => ({ swapPayload: (bytes) => Buffer.from(bytes.toString().replace('forged', 'FORGED')) }),
    ],
    [
      'has a longer payload than was signed',
      'PAYLOAD_MISMATCH',
      () => ({ swapPayload: (bytes) => Buffer.concat([bytes, Buffer.from(' ')]) }),
    ],
    ['says another payload size', 'PAYLOAD_MISMATCH', () => ({ payload_size: 3 })],
    ['says another payload hash', 'PAYLOAD_MISMATCH', () => ({ payload_sha256: '0'.repeat(64) })],
  ]

  it.each(forged)('an envelope that %s is dropped and counted', async (_, code, draft) => {
    victim.mark()
    const before = victim.served.length
    link.request('echo', 'forged', draft())
    const event = await victim.until('envelope.refused')
    expect(event).toMatchObject({ code, from: 'hostile' })
    expect(victim.served.length).toBe(before)
    // Nobody is answered who has not shown who he is, and the honest use of the link goes on.
    const good = link.request('echo', 'signed', { ordered: false })
    expect((await link.answerTo(good)).payload).toEqual({ output: 'signed', status: 'completed' })
    expect(link.heard).toEqual([])
    await untouched()
  })

  it('sixteen of them cut the link, and no other', async () => {
    victim.mark()
    const third = actor('third')
    const other = await world.peer({ as: actor('victim-2'), allow: [third, honestKey] })
    const own = await world.raw(third)
    const bad = await dialLink(own, third, other.address)
    for (let i = 0; i < 16; i++) bad.request('echo', i, { sign: () => randomBytes(64) })
    const down = await other.until('link.down', ({ agentId }) => agentId === 'third')
    expect(down).toMatchObject({ code: 'MALFORMED', last: true })
    expect(other.of('envelope.refused')).toHaveLength(16)
    expect(other.served).toEqual([])
    // It may come back, and is served as if nothing had been: its sequence has not moved.
    const again = await dialLink(own, third, other.address)
    const asked = again.request('echo', 'again')
    expect((await again.answerTo(asked)).payload).toMatchObject({ output: 'again' })
    expect(other.of('window.gap')).toEqual([])
  })

  it('the message id of another is another piece of work', async () => {
    victim.mark()
    const id = newId('msg')
    const before = victim.served.length
    const first = link.request('echo', 'mine', { message_id: id, ordered: false })
    expect((await link.answerTo(first)).payload).toMatchObject({ output: 'mine' })
    const answer = await good.peer.request(echo, 'theirs')
    const stolen = link.request('echo', 'mine', { message_id: answer.messageId as never, ordered: false })
    expect((await link.answerTo(stolen)).payload).toMatchObject({ output: 'mine' })
    expect(victim.served.slice(before)).toEqual(['mine', 'theirs', 'mine'])
    expect(victim.of('dedup.joined')).toEqual([])
    await untouched()
  })

  it('what became of the work of another is not told', async () => {
    const answer = await good.peer.request(echo, 'secret')
    const asked = link.request(
      'hermes.outcome',
      { message_id: answer.messageId, recipient_epoch: link.toEpoch, expires_at: Date.now() + 60_000 },
      { ordered: false },
    )
    expect((await link.answerTo(asked)).payload).toMatchObject({ output: { state: 'unseen' } })
    await untouched()
  })

  it('a presence report in the name of another changes nothing', async () => {
    victim.mark()
    const topic = presenceTopic('default')
    const gossip = await world.raw(actor('gossip'), { gossip: true })
    await gossip.connect(victim.address)
    await eventually(() => gossip.gossip?.getSubscribers(topic).length, 'a subscriber')
    // Signed by its own key under the name of another; and naming that one's key without its signature.
    await gossip.gossip?.publish(topic, presenceOf({ ...hostileKey, agentId: 'honest' }, { state: 'leaving' }))
    const named = { agent_id: 'honest', key: toBase64url(honestKey.key.publicKey.raw), state: 'leaving' }
    await gossip.gossip?.publish(topic, signDocument('presence', named, hostileKey.key))
    await victim.until('presence.refused', ({ code }) => code === 'BAD_SIGNATURE')
    expect(victim.of('directory.left')).toEqual([])
    expect(victim.of('directory.joined')).toEqual([])
    const [candidate] = await victim.peer.find({ agent: 'honest' })
    expect(candidate).toMatchObject({ agentId: 'honest', status: 'online' })
    await untouched()
  })
})

/** The same signature with S + L in the place of S: a second spelling, which strict verifiers refuse. */
function malleated(signature: Uint8Array): Uint8Array {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const S = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + order
  const bytes = Buffer.from(S.toString(16).padStart(64, '0'), 'hex').reverse()
  return Buffer.concat([signature.subarray(0, 32), bytes])
}
