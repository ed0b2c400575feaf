import { HermesError } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import { actor } from '../actors.ts'
import { eventually, within } from '../eventually.ts'
import { capabilityEntry, dialLink } from '../raw-link.ts'
import { honest, type Scene, scene } from '../scene.ts'
import { bulk, echo } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')
const otherKey = actor('other')
const MiB = 1024 * 1024
/** More than any header of these calls. */
const HEADER = 2048

const failure = async (promise: Promise<unknown>): Promise<HermesError> => {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason as HermesError,
  )
  if (!error) throw new Error('it did not fail')
  return error
}

describe('F-07 over-size message fails only at the far end', () => {
  /** Two who can serve, so that a failover could be seen. */
  async function three(world: Scene) {
    const victim = await world.peer({ as: victimKey, allow: [honestKey, otherKey] })
    const good = await honest(world, honestKey, victim)
    const other = await world.peer({ as: otherKey, allow: [honestKey, victimKey], bootstrap: [victim.address] })
    await good.peer.connect(other.address).catch(() => undefined)
    return { victim, good, other }
  }

  it('what fits is sent, what does not fails at once at the sender, with size and limit, and is not tried elsewhere', async () => {
    const world = scene()
    const { victim, good } = await three(world)
    const fits = 'x'.repeat(MiB - HEADER)
    // Its echo is as large; what counts here is that the request arrives.
    await good.peer.call(echo, fits, { agent: 'victim', timeoutMs: 30_000 }).catch(() => undefined)
    expect(victim.served.map((input) => String(input).length)).toEqual([fits.length])
    for (const size of [64 * MiB, 65 * MiB]) {
      good.mark()
      const error = await within(5000, `the refusal of ${size} bytes`, failure(good.peer.call(echo, 'x'.repeat(size))))
      expect(error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', retryable: false })
      expect(error.details).toMatchObject({ limit: 64 * MiB })
      expect(error.message).toContain(String(64 * MiB))
      expect(good.of('stream.opened')).toEqual([])
      expect(good.of('call.failover')).toEqual([])
      expect(good.of('call.retry')).toEqual([])
      expect(good.of('envelope.sent').filter(({ messageType }) => messageType === 'request')).toEqual([])
    }
    expect(good.links).toBeGreaterThan(0)
    expect(good.of('link.down')).toEqual([])
    expect(await good.peer.call(echo, 'small')).toBe('small')
    expect(world.escaped).toEqual([])
  })

  it('counts bytes, not letters', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey] })
    const good = await honest(world, honestKey, victim)
    // Three bytes each: 22 million letters are 66 million bytes.
    const error = await failure(good.peer.call(echo, '語'.repeat(22 * MiB)))
    expect(error).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', retryable: false })
    expect(error.details.size as number).toBeGreaterThan(66 * MiB)
    expect(good.of('stream.opened')).toEqual([])
    const fits = '語'.repeat(Math.floor((MiB - HEADER) / 6))
    expect(await good.peer.call(echo, fits, { timeoutMs: 30_000 })).toBe(fits)
  })

  it('a handler that returns 64 MiB and more: an error that says so, and no other candidate', async () => {
    const world = scene()
    const runs: number[] = []
    const size = 64 * MiB
    const victim = await world.peer({
      as: victimKey,
      allow: [honestKey],
      prepare: (peer) =>
        peer.provide(bulk, () => {
          runs.push(size)
          return 'x'.repeat(size)
        }),
    })
    const good = await honest(world, honestKey, victim)
    const error = await within(
      20_000,
      'the end of the call',
      failure(good.peer.call(bulk, null, { timeoutMs: 60_000 })),
    )
    expect(error).toMatchObject({ code: 'INVALID_RESULT', retryable: false, remote: true })
    expect(error.details).toMatchObject({ limit: size })
    expect(runs).toHaveLength(1)
    expect(good.of('call.failover')).toEqual([])
    // The link is as it was.
    expect(await good.peer.call(echo, 'small')).toBe('small')
    expect(victim.of('link.down')).toEqual([])
    expect(world.escaped).toEqual([])
  })

  it('the smaller limit of the other side is kept to, to the byte', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    for (const limit of [8192, 20_000, 300_000]) {
      victim.mark()
      const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, {
        hello: { limits: { max_envelope_bytes: limit, max_in_flight: 256 } },
        capabilities: [capabilityEntry('work')],
      })
      await victim.until('directory.changed')
      const ask = (length: number) =>
        victim.peer.callDynamic('work', 'x'.repeat(length), { agent: 'hostile', timeoutMs: 20_000 })
      const isWork = ({ header }: { header: { target_capability?: string | undefined } }) =>
        header.target_capability === 'work'
      // How long a header is depends on digits; so it is looked for from below.
      let sent = 0
      let refused: HermesError | undefined
      for (let length = limit - 700; !refused; length++) {
        const call = ask(length).catch((error: unknown) => error)
        const first = await Promise.race([call, link.next(isWork)])
        if (first instanceof HermesError) refused = first
        else {
          const { size } = first as { size: number }
          expect(size).toBeLessThanOrEqual(limit)
          sent = size
          link.answer(first as never, null)
          await call
          // In the middle nothing of interest happens.
          if (size < limit - 8) length += limit - 8 - size
        }
      }
      // A longer sequence number may have made the last step one of two bytes.
      expect(sent).toBeGreaterThanOrEqual(limit - 1)
      expect(refused).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', retryable: false })
      expect(refused.details).toMatchObject({ limit })
      expect(refused.details.size as number).toBeGreaterThan(limit)
      link.reset()
      await victim.until('link.down')
    }
  })

  it.each([
    ['and says nothing more', 0],
    ['and asks for much', 10],
  ])('a limit that leaves no room for a header hurts nobody but who said it %s', async (_, requests) => {
    const world = scene()
    const victim = await world.peer({
      as: victimKey,
      allow: [hostileKey, honestKey],
      tuning: { heartbeatMs: 50, tickMs: 20, receiptFrames: 2 },
    })
    const good = await honest(world, honestKey, victim)
    const beats = () =>
      victim.of('envelope.sent').filter(({ to, messageType }) => to === 'honest' && messageType === 'heartbeat').length
    await eventually(() => beats() > 0, 'a heartbeat')
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, {
      hello: { limits: { max_envelope_bytes: 1, max_in_flight: 1 } },
    }).catch(() => undefined)
    for (let i = 0; i < requests && link && !link.ended; i++) link.request('echo', i)
    // Heartbeats are due, receipts too: nothing of it may end the process or any other link.
    const before = beats()
    await eventually(() => beats() > before + 5 || world.escaped.length > 0, 'heartbeats to the honest peer')
    expect(world.escaped).toEqual([])
    expect(await good.peer.call(echo, 'served')).toBe('served')
    expect(good.of('link.down')).toEqual([])
  })
})
