import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { besieged, honestKey, hostileKey } from '../besieged.ts'
import { craft } from '../craft.ts'
import { challengeOf, welcomeOf, whenDialled } from '../handshake-attacks.ts'
import { bytesOf } from '../raw-handshake.ts'
import { partOf } from '../raw-stream.ts'
import { refused } from '../verdict.ts'

describe('a handshake that is attacked by the one who is dialled', () => {
  const siege = besieged()

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
    expect(await whenDialled(siege.attack, respond)).toEqual(refused(code))
    expect(siege.victim.served).not.toContain('too early')
    await siege.untouched()
  })

  it('with what the victim says to it, in the other direction: refused both ways', async () => {
    // The victim dials; its hello and its proof come back to it over a stream that the attacker opens.
    const back = await siege.attack.raw.open(siege.victim.address)
    const verdict = await whenDialled(siege.attack, async (hand, hello) => {
      back.send(partOf(bytesOf(hello)))
      expect(await back.told()).toEqual({ error_code: 'IDENTITY_MISMATCH' })
      back.close()
      hand.send(challengeOf(hostileKey, { agent_id: 'honest' }))
    })
    expect(verdict).toEqual(refused('IDENTITY_MISMATCH'))
    await siege.untouched()
  })

  it('by a stranger who says that another process runs under the victim’s key: the victim goes on', async () => {
    const stranger = await siege.world.raw(actor('another stranger'))
    siege.victim.mark()
    const answered = stranger.accept().then(async (stream) => {
      await stream.part()
      stream.send(partOf(bytesOf({ error_code: 'DUPLICATE_AGENT' })))
      return stream
    })
    await expect(siege.victim.peer.connect(stranger.address)).rejects.toMatchObject({
      code: 'DUPLICATE_AGENT',
      remote: true,
    })
    const stream = await answered
    expect(siege.victim.of('peer.notice')).toEqual([])
    stream.close()
    await siege.untouched()
  })
})
