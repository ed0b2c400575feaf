import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { craft } from '../craft.ts'
import { eventually } from '../eventually.ts'
import { bytesOf, handHandshake, helloOf, proofOf } from '../raw-handshake.ts'
import { dialLink } from '../raw-link.ts'
import type { RawPeer } from '../raw-peer.ts'
import { partOf, type RawStream } from '../raw-stream.ts'
import { honest, sharedScene } from '../scene.ts'
import { byTier, PATIENCE_MS } from '../tier.ts'
import { echo, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')
const ROUNDS = byTier({ test: 12, ci: 200, long: 2000 })

describe('F-23 remote misbehaviour kills the process', () => {
  const world = sharedScene()
  let victim: Victim
  let good: Victim
  let raw: RawPeer
  /** Handles and timers of this process before anything was done. */
  let resources = 0

  beforeAll(async () => {
    victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey], tuning: { callerGraceMs: 100 } })
    good = await honest(world, honestKey, victim)
    raw = await world.raw(hostileKey)
    await good.until('directory.changed')
    resources = process.getActiveResourcesInfo().length
  })

  const tick = () => new Promise<void>((resolve) => setImmediate(resolve))
  const hello = () => partOf(bytesOf(helloOf(hostileKey)))
  /** A request that would be sound on the link that is not there yet. */
  const early = () =>
    craft({ self: hostileKey, to: 'victim', toEpoch: 1, epoch: 1, sequence: 1 }, { target_capability: 'echo' }).frame

  /** What is done on a fresh stream. */
  const onStream: Record<string, (stream: RawStream) => void | Promise<void>> = {
    'open and reset': (stream) => stream.reset(),
    'open and close with no data': (stream) => stream.close(),
    'half a hello, then reset': (stream) => {
      stream.send(hello().subarray(0, 50))
      stream.reset()
    },
    'half a hello, then close': (stream) => {
      stream.send(hello().subarray(0, 50))
      stream.close()
    },
    'a hello, then reset before the challenge can be written': (stream) => {
      stream.send(hello())
      stream.reset()
    },
    'a hello, then reset while the challenge is on its way': async (stream) => {
      stream.send(hello())
      await tick()
      stream.reset()
    },
    'a hello, then close': (stream) => {
      stream.send(hello())
      stream.close()
    },
    'a challenge read, then reset': async (stream) => {
      stream.send(hello())
      await stream.part()
      stream.reset()
    },
    'a proof, then reset before the welcome is read': async (stream) => {
      const hand = handHandshake(stream, hostileKey, { initiator: raw.peerId, responder: victim.self.peerId })
      hand.send(helloOf(hostileKey))
      await hand.read()
      hand.sendSigned('proof', proofOf({ epoch: Date.now() + 1_000_000 }))
      stream.reset()
    },
    'garbage instead of a hello': (stream) => {
      stream.send(randomBytes(2000))
      stream.close()
    },
    'garbage instead of a proof': async (stream) => {
      stream.send(hello())
      await stream.part()
      stream.send(randomBytes(2000))
      stream.close()
    },
    'envelopes instead of a handshake': (stream) => {
      for (let i = 0; i < 3; i++) stream.send(early())
      stream.close()
    },
  }

  /** What is done on a sound link, each time over a new one. */
  const onLink: Record<string, (link: Awaited<ReturnType<typeof dialLink>>) => void | Promise<void>> = {
    'a request, then reset before the answer is written': (link) => {
      link.request('echo', 'x'.repeat(1000))
      link.reset()
    },
    'a request, then reset while the answer is written': async (link) => {
      link.request('echo', 'x'.repeat(100_000))
      await tick()
      link.reset()
    },
    'half a frame, then reset': (link) => {
      link.stream.send(link.craft({ target_capability: 'echo' }).frame.subarray(0, 100))
      link.reset()
    },
    'half a frame, then close': (link) => {
      link.stream.send(link.craft({ target_capability: 'echo' }).frame.subarray(0, 100))
      link.stream.close()
    },
    'garbage on the link': (link) => {
      link.stream.send(randomBytes(3000))
      link.stream.close()
    },
    'a request, then close': (link) => {
      link.request('echo', 1)
      link.stream.close()
    },
    'a request and a cancel, then reset': (link) => {
      const asked = link.request('echo', 1)
      link.send({ message_type: 'cancel', payload: { message_id: asked.messageId, expires_at: Date.now() + 1000 } })
      link.reset()
    },
  }

  async function baseline(): Promise<void> {
    await eventually(() => victim.links === 1, 'all links but the honest one to be gone')
    await eventually(
      () => raw.connections.every(({ streams }) => streams.every(({ protocol }) => !protocol.includes('hermes/link'))),
      'all streams to be gone',
    )
    // Some of them belong to connections that are still being closed, on both sides.
    await eventually(() => process.getActiveResourcesInfo().length <= resources + 6, 'handles and timers to be gone')
    expect(await good.peer.call(echo, 'served')).toBe('served')
    expect(good.of('link.down')).toEqual([])
    expect(world.escaped).toEqual([])
  }

  it.each(Object.keys(onStream))(
    `by: %s, ${ROUNDS} rounds`,
    async (name) => {
      for (let round = 0; round < ROUNDS; round++) {
        // The victim may have hung up, or refuse one more stream while others end.
        const stream = await raw.open(victim.address).catch(() => undefined)
        if (!stream) continue
        await Promise.resolve(onStream[name]?.(stream)).catch(() => undefined)
      }
      await baseline()
    },
    PATIENCE_MS,
  )

  it.each(Object.keys(onLink))(
    `by: %s, ${ROUNDS} rounds`,
    async (name) => {
      let made = 0
      for (let round = 0; round < ROUNDS; round++) {
        const link = await dialLink(raw, hostileKey, victim.address, { epoch: Date.now() + 1_000_000 }).catch(
          () => undefined,
        )
        if (!link) continue
        made++
        await onLink[name]?.(link)
      }
      expect(made).toBeGreaterThan(ROUNDS / 4)
      await baseline()
    },
    PATIENCE_MS,
  )

  it(
    'by connections that are cut in the middle of everything',
    async () => {
      for (let round = 0; round < ROUNDS / 2; round++) {
        const link = await dialLink(raw, hostileKey, victim.address, { epoch: Date.now() + 1_000_000 }).catch(
          () => undefined,
        )
        for (let i = 0; i < 5; i++) link?.request('echo', 'x'.repeat(10_000))
        if (round % 2 === 0) await tick()
        for (const connection of raw.connections) connection.abort(new Error('cut'))
      }
      await baseline()
    },
    PATIENCE_MS,
  )

  it(
    'by whom the victim dials: garbage, half answers and resets',
    async () => {
      const answers: ((stream: RawStream) => void)[] = [
        (stream) => stream.reset(),
        (stream) => stream.close(),
        (stream) => stream.send(randomBytes(500)),
        (stream) => {
          stream.send(hello().subarray(0, 30))
          stream.reset()
        },
        (stream) => {
          stream.send(hello())
          stream.close()
        },
      ]
      for (let round = 0; round < ROUNDS / 4; round++) {
        const dialling = victim.peer.connect(raw.address)
        const failed = dialling.then(
          () => undefined,
          (error: unknown) => error as { code: string },
        )
        const stream = await raw.accept()
        answers[round % answers.length]?.(stream)
        const error = await failed
        expect(['PEER_UNREACHABLE', 'HANDSHAKE_REFUSED', 'MALFORMED', 'LIMIT_EXCEEDED']).toContain(error?.code)
        stream.close()
      }
      await baseline()
    },
    PATIENCE_MS,
  )
})
