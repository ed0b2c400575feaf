import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from '../eventually.ts'
import { honestKey, hostileKey, linkScene, victimKey } from '../link-scene.ts'
import { heldSince, MiB } from '../memory.ts'
import { dialLink } from '../raw-link.ts'
import { honest, scene } from '../scene.ts'
import { bulk, echo, slow } from '../victim.ts'

describe('a memory bomb in a payload', () => {
  const { peers, fresh, drop, untouched } = linkScene()

  it('that went off would be seen', () => {
    const held = heldSince()
    const kept = Buffer.alloc(32 * MiB, 1)
    expect(held(16 * MiB)).toBeGreaterThan(16 * MiB)
    expect(kept).toHaveLength(32 * MiB)
  })

  const refusedPayloads: readonly (readonly [string, Uint8Array | (() => Uint8Array)])[] = [
    ['100,000 lists inside one another', Buffer.from(`{"input":${'['.repeat(100_000)}`)],
    ['33 lists inside one another', Buffer.from(`{"input":${'['.repeat(33)}${']'.repeat(33)}}`)],
    [
      '10,001 keys',
      () =>
        Buffer.from(
          JSON.stringify({ input: Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [`k${index}`, 0])) }),
        ),
    ],
    [
      'a key of a million letters, twice',
      () => Buffer.from(`{"input":{"${'k'.repeat(400_000)}":1,"${'k'.repeat(400_000)}":2}}`),
    ],
    ['a number of 100,000 digits', () => Buffer.from(`{"input":${'9'.repeat(100_000)}}`)],
    ['a message pack that says it has 2^32 items', () => Buffer.from('81a5696e707574ddffffffff', 'hex')],
    ['a message pack that says it has 2^32 bytes', () => Buffer.from('81a5696e707574dbffffffff', 'hex')],
    [
      'a message pack of 100,000 lists inside one another',
      () => Buffer.concat([Buffer.from('81a5696e707574', 'hex'), Buffer.alloc(100_000, 0x91)]),
    ],
  ]

  it.each(refusedPayloads)('%s: refused with a clear code, at once, and others are served', async (what, bytes) => {
    const payload = typeof bytes === 'function' ? bytes() : bytes
    const link = await fresh()
    const held = heldSince()
    const since = performance.now()
    const asked = link.request('echo', null, {
      payload,
      ...(what.includes('message pack') ? { content_type: 'application/msgpack' } : {}),
    })
    const answer = await link.answerTo(asked)
    expect(answer.payload).toMatchObject({ error_code: 'INVALID_PAYLOAD', retryable: false })
    expect(performance.now() - since).toBeLessThan(5000)
    expect(held(16 * MiB)).toBeLessThan(16 * MiB)
    expect(peers().victim.of('handler.started')).toEqual([])
    expect((await link.answerTo(link.request('echo', 'next'))).payload).toMatchObject({ output: 'next' })
    await untouched()
    await drop(link)
  })
})

describe('a memory bomb that is more than a payload', () => {
  it('a jump of the sequence to its very end keeps nothing, and hits nobody but its sender', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    const good = await honest(world, honestKey, victim)
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address)
    const held = heldSince()
    for (let i = 1; i <= 300; i++) link.request('echo', i, { sequence: i * 1_000_000_000 })
    const last = link.request('echo', 'last', { sequence: Number.MAX_SAFE_INTEGER })
    expect((await link.answerTo(last, 30_000)).payload).toMatchObject({ output: 'last' })
    expect(victim.of('window.gap').length).toBeGreaterThan(0)
    expect(held(16 * MiB)).toBeLessThan(16 * MiB)
    expect(await good.peer.call(echo, 'other')).toBe('other')
    expect(victim.of('window.gap').every(({ from }) => from === 'hostile')).toBe(true)
  })

  it('what waits behind a gap is bounded in number and in bytes', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey], tuning: { gapTimeoutMs: 60_000 } })
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address)
    const held = heldSince()
    link.sequence = 2
    // 20 of a quarter MiB are 5 MiB: over 4 MiB the gap is given up.
    for (let i = 0; i < 20; i++)
      link.request('echo', i, { payload: { input: i, context: { fill: 'x'.repeat(MiB / 4) } } })
    expect(await victim.until('window.gap', undefined, 30_000)).toMatchObject({
      from: 'hostile',
      sequence: 1,
      count: 1,
      reason: 'overflow',
    })
    await eventually(() => victim.served.length === 20, 'all of them to be served', 30_000)
    expect(victim.served).toEqual(Array.from({ length: 20 }, (_, index) => index))
    expect(held(64 * MiB)).toBeLessThan(64 * MiB)
    // And by number.
    link.sequence++
    for (let i = 0; i < 300; i++) link.request('echo', 1000 + i)
    await eventually(() => victim.served.length === 320, 'all of them to be served', 30_000)
    expect(victim.of('window.gap')).toHaveLength(2)
  })

  it('answers that are never read do not pile up: the work is refused before', async () => {
    const world = scene()
    const big = 'x'.repeat(MiB / 2)
    const victim = await world.peer({
      as: victimKey,
      allow: [honestKey, hostileKey],
      tuning: { writeStallMs: 500, tickMs: 100 },
      prepare: (peer) => peer.provide(bulk, () => big),
    })
    const good = await honest(world, honestKey, victim)
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address, { silent: true })
    link.stream.stream.pause()
    const held = heldSince()
    for (let i = 0; i < 200; i++) link.request('bulk', i)
    // Over its share of unfetched answers, then over the time that a link may stand still.
    expect(await victim.until('link.down', ({ agentId }) => agentId === 'hostile', 30_000)).toMatchObject({
      code: 'PEER_UNREACHABLE',
    })
    expect(victim.of('handler.ended').length).toBeLessThan(80)
    expect(held(100 * MiB)).toBeLessThan(100 * MiB)
    expect(await good.peer.call(echo, 'other')).toBe('other')
    expect(world.escaped).toEqual([])
  })

  it('a budget that no timer can count ends nothing early, and fills no log', async () => {
    const world = scene()
    const warnings: string[] = []
    const onWarning = ({ message }: Error) => void warnings.push(message)
    process.on('warning', onWarning)
    onTestFinished(() => void process.off('warning', onWarning))
    const reasons: unknown[] = []
    const victim = await world.peer({
      as: victimKey,
      allow: [hostileKey],
      prepare: (peer) =>
        peer.provide(
          slow,
          (_, { signal }) =>
            new Promise((resolve) => signal.addEventListener('abort', () => resolve(reasons.push(signal.reason)))),
        ),
    })
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address)
    for (const timeout_ms of [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
      victim.mark()
      link.request('slow', timeout_ms, { timeout_ms })
      await victim.until('handler.started')
      // Later than a timer of one millisecond, which is what a number too large for it comes to.
      for (let i = 0; i < 3; i++) await link.answerTo(link.request('echo', i))
      expect(reasons).toEqual([])
    }
    expect(warnings).toEqual([])
    expect(link.heard).toEqual([])
  })
})
