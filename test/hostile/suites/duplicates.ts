import { describe, expect, it } from 'vitest'
import { actor, seedOf } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { acceptLink, dialLink } from '../raw-link.ts'
import { type Scene, scene } from '../scene.ts'
import { echo, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const impostor = actor('honest', seedOf('another key'))

/** Fast reconnects: who would flap, does it here. */
const EAGER = { reconnectMs: 20, reconnectCapMs: 100, presenceMs: 500, heartbeatMs: 200, tickMs: 50 }

const again = (world: Scene, victim: Victim) =>
  world.peer({ as: honestKey, allow: [victimKey], bootstrap: [victim.address], tuning: EAGER })

describe('F-26 two processes, one name', () => {
  it('the same key twice: the older process is told, says so and stops announcing; the newer one is served', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey], tuning: EAGER })
    const first = await again(world, victim)
    await first.until('link.up')
    expect(await victim.peer.call(echo, 1, { agent: 'honest' })).toBe(1)
    const second = await again(world, victim)
    await second.until('link.up')
    // Visible on both sides.
    await first.until('peer.notice', ({ text }) => /another process|later life/i.test(text))
    await eventually(
      () =>
        victim.of('link.down').some(({ code }) => code === 'PEER_RESTARTED') ||
        victim.of('handshake.refused').some(({ code }) => code === 'DUPLICATE_AGENT'),
      'the victim to see it',
    )
    await first.until('link.down')
    // No flapping: calls go to the newer one, and its link stands.
    first.mark()
    second.mark()
    for (let i = 0; i < 10; i++) expect(await victim.peer.call(echo, i, { agent: 'honest' })).toBe(i)
    expect(first.served).toEqual([1])
    expect(second.served).toHaveLength(10)
    expect(second.of('link.down')).toEqual([])
    expect(second.of('peer.notice')).toEqual([])
    expect(await second.peer.call(echo, 'from the newer')).toBe('from the newer')
    // The older one announces itself no more.
    // One may have been on its way when it fell silent.
    await second.until('presence.sent', undefined, 20_000)
    const reports = first.of('presence.sent').length
    const before = second.of('presence.sent').length
    await eventually(() => second.of('presence.sent').length >= before + 3, 'more reports of the newer one')
    expect(first.of('presence.sent').length).toBe(reports)
    expect(world.escaped).toEqual([])
  })

  it('the same id with another key: refused on both ways in, and the first one is served as before', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey], tuning: EAGER })
    const first = await again(world, victim)
    await first.until('link.up')
    victim.mark()
    const other = await world.raw(impostor)
    await expect(dialLink(other, impostor, victim.address)).rejects.toMatchObject({
      told: { error_code: 'IDENTITY_MISMATCH' },
    })
    const dialled = expect(victim.peer.connect(other.address)).rejects.toMatchObject({ code: 'IDENTITY_MISMATCH' })
    await expect(acceptLink(other, impostor)).rejects.toMatchObject({ told: { error_code: 'IDENTITY_MISMATCH' } })
    await dialled
    // The reason names both fingerprints, for the operator to compare.
    for (const { reason } of victim.of('handshake.refused')) {
      expect(reason).toContain(honestKey.key.publicKey.fingerprint)
      expect(reason).toContain(impostor.key.publicKey.fingerprint)
    }
    expect(await victim.peer.call(echo, 'same', { agent: 'honest' })).toBe('same')
    expect(first.served).toEqual(['same'])
    expect(first.of('link.down')).toEqual([])
    expect(first.of('peer.notice').filter(({ text }) => /another process/i.test(text))).toEqual([])
  })

  it('a fast restart is no conflict: the newest life wins at once', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey], tuning: EAGER })
    let before = await again(world, victim)
    await before.until('link.up')
    for (let life = 0; life < 3; life++) {
      victim.mark()
      // Its connection is cut without a word, and the next life comes at once.
      const stopping = before.peer.stop()
      const next = await again(world, victim)
      await next.until('link.up')
      await stopping
      expect(next.of('peer.notice').filter(({ text }) => /another process|later life/i.test(text))).toEqual([])
      expect(victim.of('handshake.refused')).toEqual([])
      expect(await next.peer.call(echo, life)).toBe(life)
      expect(
        await eventually(() =>
          victim.peer.call(echo, life, { agent: 'honest', timeoutMs: 5000 }).then((value) => value === life),
        ),
      ).toBe(true)
      expect(victim.of('window.gap')).toEqual([])
      before = next
    }
    expect(world.escaped).toEqual([])
  })

  it('a life that comes back after a later one was seen is told so, whoever dials', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey] })
    const raw = await world.raw(honestKey)
    const later = await dialLink(raw, honestKey, victim.address, { epoch: 2_000_000_000_000 })
    later.reset()
    await victim.until('link.down')
    victim.mark()
    await expect(dialLink(raw, honestKey, victim.address, { epoch: 1_000_000_000_000 })).rejects.toMatchObject({
      told: { error_code: 'DUPLICATE_AGENT' },
    })
    const dialled = expect(victim.peer.connect(raw.address)).rejects.toMatchObject({ code: 'DUPLICATE_AGENT' })
    await acceptLink(raw, honestKey, { epoch: 1_000_000_000_000 }).catch(() => undefined)
    await dialled
    // What was said of the other is no reason to fall silent oneself.
    expect(victim.of('peer.notice')).toEqual([])
    expect((await dialLink(raw, honestKey, victim.address, { epoch: 2_000_000_000_000 })).to).toBe('victim')
  })

  it('a later life that only one other agent speaks of ends that handshake and no link', async () => {
    const world = scene()
    const hostile = actor('hostile')
    const victim = await world.peer({ as: victimKey, allow: [honestKey, hostile], tuning: EAGER })
    const good = await again(world, victim)
    await good.until('link.up')
    const raw = await world.raw(hostile)
    await expect(
      dialLink(raw, hostile, victim.address, { proof: { seen_epoch: 9_000_000_000_000_000 } }),
    ).rejects.toMatchObject({
      told: { error_code: 'DUPLICATE_AGENT' },
    })
    // It goes on announcing itself.
    victim.mark()
    await victim.until('presence.sent')
    expect(await good.peer.call(echo, 'served')).toBe('served')
    expect(await victim.peer.call(echo, 'serving', { agent: 'honest' })).toBe('serving')
    expect(good.of('link.down')).toEqual([])
  })
})
