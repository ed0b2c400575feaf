import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { actor } from '../actors.ts'
import { eventually } from '../eventually.ts'
import { bytesOf, handHandshake, helloOf, proofOf } from '../raw-handshake.ts'
import { dialLink, type RawLink } from '../raw-link.ts'
import type { RawPeer } from '../raw-peer.ts'
import { partOf, varint } from '../raw-stream.ts'
import { honest, scene, sharedScene } from '../scene.ts'
import { refused, TOLD, verdictOf } from '../verdict.ts'
import { bulk, echo, slow, type Victim } from '../victim.ts'

const victimKey = actor('victim')
const honestKey = actor('honest')
const hostileKey = actor('hostile')
const MiB = 1024 * 1024
/** Before the handshake is over, and after it: largest body of a message, largest header and payload together. */
const HANDSHAKE = 8 * 1024
const ENVELOPE = MiB

/** Bytes outside and inside the heap, after what is garbage has gone where the process allows to ask for that. */
function memory(): number {
  ;(globalThis as { gc?: () => void }).gc?.()
  const { external, arrayBuffers } = process.memoryUsage()
  return Math.max(external, arrayBuffers)
}

describe('F-06 peer-supplied length trusted before a limit check', () => {
  const world = sharedScene()
  let victim: Victim
  let good: Victim
  let raw: RawPeer

  beforeAll(async () => {
    victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    good = await honest(world, honestKey, victim)
    raw = await world.raw(hostileKey)
  })

  async function unaffected(before: number): Promise<void> {
    expect(await good.peer.call(echo, 'served')).toBe('served')
    expect(memory() - before).toBeLessThan(8 * MiB)
    expect(world.escaped).toEqual([])
  }

  const bombs: readonly (readonly [string, (limit: number) => Uint8Array])[] = [
    ['64 bytes of a length that never ends', () => Buffer.alloc(64, 0xff)],
    ['a length of 2^40, then silence', () => varint(2n ** 40n)],
    ['a length of 2^34, the largest that 5 bytes can say', () => varint(2n ** 35n - 1n)],
    [
      'one byte more than the limit, with all its bytes',
      (limit) => Buffer.concat([varint(limit + 1), Buffer.alloc(limit + 1, 0x20)]),
    ],
  ]

  it.each(bombs)('before the handshake: %s: closed with a size error', async (_, bomb) => {
    victim.mark()
    const before = memory()
    const stream = await raw.open(victim.address)
    stream.send(bomb(HANDSHAKE))
    expect(await verdictOf(victim, stream)).toEqual(refused('LIMIT_EXCEEDED'))
    await unaffected(before)
  })

  it('before the handshake: a length in a longer form than it needs: refused', async () => {
    victim.mark()
    const stream = await raw.open(victim.address)
    stream.send(Buffer.from([0x82, 0x00, 0x7b, 0x7d]))
    expect(await verdictOf(victim, stream)).toEqual(refused('MALFORMED'))
  })

  it.each(bombs)('in the place of the proof: %s: closed with a size error', async (_, bomb) => {
    victim.mark()
    const before = memory()
    const stream = await raw.open(victim.address)
    stream.send(partOf(bytesOf(helloOf(hostileKey))))
    await stream.part()
    stream.send(bomb(HANDSHAKE))
    expect(await verdictOf(victim, stream)).toEqual(refused('LIMIT_EXCEEDED'))
    await unaffected(before)
  })

  it('before the handshake: a message of exactly 8 KiB is accepted', async () => {
    victim.mark()
    const stream = await raw.open(victim.address)
    const hand = handHandshake(stream, hostileKey, { initiator: raw.peerId, responder: victim.self.peerId })
    const hello = helloOf(hostileKey, { versions: ['1.0', '1.1'], padding: '' })
    const padded = { ...hello, padding: 'x'.repeat(HANDSHAKE - bytesOf(hello).length) }
    expect(bytesOf(padded)).toHaveLength(HANDSHAKE)
    hand.send(padded)
    await hand.read()
    const proof = proofOf({ padding: '' })
    const whole = { ...proof, padding: 'x'.repeat(HANDSHAKE - bytesOf(proof).length) }
    hand.sendSigned('proof', whole)
    expect((await hand.readSigned()).body).toHaveProperty('link_id')
    stream.reset()
    await victim.until('link.down')
  })

  it('before the handshake: more bytes than its messages can have are not kept', async () => {
    victim.mark()
    const before = memory()
    const stream = await raw.open(victim.address)
    // A length that is allowed, and then everything at once, in pieces.
    stream.send(varint(HANDSHAKE))
    for (let i = 0; i < 1024 && !stream.ended; i++) stream.send(Buffer.alloc(1024, 0x20))
    const verdict = await verdictOf(victim, stream)
    expect(verdict).toMatchObject({ linked: false })
    expect(TOLD).toContain(verdict.told)
    await unaffected(before)
  })

  async function linked(): Promise<RawLink> {
    victim.mark()
    return dialLink(raw, hostileKey, victim.address)
  }

  it.each(bombs)('after the handshake: %s: closed with a size error', async (_, bomb) => {
    const link = await linked()
    const before = memory()
    link.stream.send(bomb(2 * ENVELOPE))
    expect(await victim.until('link.down')).toMatchObject({ agentId: 'hostile', code: 'LIMIT_EXCEEDED' })
    await link.untilEnded()
    await unaffected(before)
  })

  it('after the handshake: an envelope of exactly 1 MiB is accepted, and one of a byte more is refused for its size', async () => {
    const link = await linked()
    const fill = (target: number) => {
      // The header grows with the digits of the size, so the payload is fitted to it.
      const probe = link.craft({
        target_capability: 'echo',
        payload: { input: 'x'.repeat(target - 1000) },
        sequence: 1,
      })
      const missing = target - probe.header.length - probe.payload.length
      return link.craft({ target_capability: 'echo', payload: { input: 'x'.repeat(target - 1000 + missing) } })
    }
    const exact = fill(ENVELOPE)
    expect(exact.header.length + exact.payload.length).toBe(ENVELOPE)
    // Its answer would be as large: what is asked for is that it is taken and started.
    link.stream.send(exact.frame)
    await victim.until('handler.started', undefined, 30_000)
    const over = fill(ENVELOPE + 1)
    expect(over.header.length + over.payload.length).toBe(ENVELOPE + 1)
    link.stream.send(over.frame)
    // A size error, not a broken signature.
    expect(await victim.until('envelope.refused')).toMatchObject({ code: 'LIMIT_EXCEEDED' })
    link.reset()
    await victim.until('link.down')
  })

  it('after the handshake: a header over 4 KiB is refused for its size', async () => {
    const link = await linked()
    const one = link.craft({ target_capability: 'echo' })
    const header = Buffer.concat([one.header, Buffer.alloc(4097 - one.header.length, 0x20)])
    link.stream.send(
      partOf(Buffer.concat([Buffer.alloc(1), partOf(header), partOf(one.payload), one.signature, Buffer.alloc(1)])),
    )
    expect(await victim.until('envelope.refused')).toMatchObject({ code: 'LIMIT_EXCEEDED' })
    link.reset()
    await victim.until('link.down')
  })

  it('after the handshake: a frame in pieces of one byte costs about its own size', async () => {
    const link = await linked()
    const one = link.craft({ target_capability: 'echo', payload: { input: 'x'.repeat(10_000) } })
    await good.peer.call(echo, 1)
    const before = process.memoryUsage().heapUsed + memory()
    for (let at = 0; at < one.frame.length - 1; at++) link.stream.send(one.frame.subarray(at, at + 1))
    await eventually(() => link.stream.stream.writableNeedsDrain === false, 'everything to be sent')
    await good.peer.call(echo, 2)
    expect(process.memoryUsage().heapUsed + memory() - before).toBeLessThan(32 * MiB)
    link.stream.send(one.frame.subarray(-1))
    expect((await link.answerTo(one)).header.message_type).toBe('response')
    link.reset()
    await victim.until('link.down')
  })

  describe('frames that are broken inside', () => {
    const sound = (link: RawLink) => link.craft({ target_capability: 'echo', payload: { input: 'broken' } })
    const frame = (...pieces: (Uint8Array | number)[]) =>
      partOf(Buffer.concat(pieces.map((piece) => (typeof piece === 'number' ? Buffer.from([piece]) : piece))))
    const cases: readonly (readonly [string, string, (link: RawLink) => Uint8Array])[] = [
      ['nothing', 'MALFORMED', () => partOf(Buffer.alloc(0))],
      ['an unknown tag', 'UNKNOWN_TAG', () => frame(9, randomBytes(100))],
      [
        'a batch',
        'BATCH_UNSUPPORTED',
        (link) => frame(2, 1, randomBytes(64), partOf(sound(link).header), partOf(sound(link).payload)),
      ],
      ['only a tag', 'MALFORMED', () => frame(0)],
      ['a header that ends too early', 'MALFORMED', () => frame(0, varint(500), randomBytes(10))],
      ['a header that says it is huge', 'LIMIT_EXCEEDED', () => frame(0, varint(2n ** 31n), randomBytes(10))],
      [
        'a payload that says it is huge',
        'LIMIT_EXCEEDED',
        (link) => frame(0, partOf(sound(link).header), varint(2n ** 31n), randomBytes(10)),
      ],
      [
        'half a signature',
        'MALFORMED',
        (link) => frame(0, partOf(sound(link).header), partOf(sound(link).payload), randomBytes(30)),
      ],
      [
        'no hops section',
        'MALFORMED',
        (link) => frame(0, partOf(sound(link).header), partOf(sound(link).payload), randomBytes(64)),
      ],
      [
        '200 hops',
        'LIMIT_EXCEEDED',
        (link) => frame(0, partOf(sound(link).header), partOf(sound(link).payload), randomBytes(64), varint(200)),
      ],
      [
        'bytes left over',
        'MALFORMED',
        (link) => frame(0, partOf(sound(link).header), partOf(sound(link).payload), randomBytes(64), 0, 0),
      ],
      [
        'a proof for a place that no batch has',
        'BAD_PROOF',
        (link) =>
          frame(1, partOf(sound(link).header), partOf(sound(link).payload), randomBytes(64), varint(3), varint(2), 0),
      ],
      [
        'a proof with too few siblings',
        'MALFORMED',
        (link) =>
          frame(1, partOf(sound(link).header), partOf(sound(link).payload), randomBytes(64), varint(0), varint(16), 0),
      ],
      ['garbage', 'MALFORMED', () => frame(0, Buffer.alloc(100))],
    ]
    let link: RawLink
    beforeAll(async () => {
      link = await linked()
    })

    it.each(cases)('%s: refused, and the link goes on', async (_, code, bytes) => {
      victim.mark()
      link.stream.send(bytes(link))
      expect(await victim.until('envelope.refused')).toMatchObject({ code, from: 'hostile' })
      const next = link.request('echo', 'sound', { ordered: false })
      expect((await link.answerTo(next)).payload).toMatchObject({ output: 'sound' })
      expect(victim.served).not.toContain('broken')
    })
  })
})

describe('a memory bomb', () => {
  it('that went off would be seen', () => {
    const before = memory()
    const kept = Buffer.alloc(32 * MiB, 1)
    expect(memory() - before).toBeGreaterThan(16 * MiB)
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
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey] })
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address)
    const payload = typeof bytes === 'function' ? bytes() : bytes
    const before = memory()
    const since = performance.now()
    const asked = link.request('echo', null, {
      payload,
      ...(what.includes('message pack') ? { content_type: 'application/msgpack' } : {}),
    })
    const answer = await link.answerTo(asked)
    expect(answer.payload).toMatchObject({ error_code: 'INVALID_PAYLOAD', retryable: false })
    expect(performance.now() - since).toBeLessThan(5000)
    expect(memory() - before).toBeLessThan(16 * MiB)
    expect(victim.served).toEqual([])
    expect((await link.answerTo(link.request('echo', 'next'))).payload).toMatchObject({ output: 'next' })
    expect(victim.of('window.gap')).toEqual([])
    expect(world.escaped).toEqual([])
  })

  it('a jump of the sequence to its very end keeps nothing, and hits nobody but its sender', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [honestKey, hostileKey] })
    const good = await honest(world, honestKey, victim)
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address)
    const before = memory()
    for (let i = 1; i <= 300; i++) link.request('echo', i, { sequence: i * 1_000_000_000 })
    const last = link.request('echo', 'last', { sequence: Number.MAX_SAFE_INTEGER })
    expect((await link.answerTo(last, 30_000)).payload).toMatchObject({ output: 'last' })
    expect(victim.of('window.gap').length).toBeGreaterThan(0)
    expect(memory() - before).toBeLessThan(16 * MiB)
    expect(await good.peer.call(echo, 'other')).toBe('other')
    expect(victim.of('window.gap').every(({ from }) => from === 'hostile')).toBe(true)
  })

  it('what waits behind a gap is bounded in number and in bytes', async () => {
    const world = scene()
    const victim = await world.peer({ as: victimKey, allow: [hostileKey], tuning: { gapTimeoutMs: 60_000 } })
    const link = await dialLink(await world.raw(hostileKey), hostileKey, victim.address)
    const before = memory()
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
    expect(memory() - before).toBeLessThan(64 * MiB)
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
    const before = memory()
    for (let i = 0; i < 200; i++) link.request('bulk', i)
    // Over its share of unfetched answers, then over the time that a link may stand still.
    expect(await victim.until('link.down', ({ agentId }) => agentId === 'hostile', 30_000)).toMatchObject({
      code: 'PEER_UNREACHABLE',
    })
    expect(victim.of('handler.ended').length).toBeLessThan(80)
    expect(memory() - before).toBeLessThan(100 * MiB)
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
