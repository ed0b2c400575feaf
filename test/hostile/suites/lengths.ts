import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../eventually.ts'
import { hostileKey, linkScene } from '../link-scene.ts'
import { heldSince, MiB, wholeMemory } from '../memory.ts'
import { bytesOf, handHandshake, helloOf, proofOf } from '../raw-handshake.ts'
import type { RawLink } from '../raw-link.ts'
import { partOf, varint } from '../raw-stream.ts'
import { refused, TOLD, verdictOf } from '../verdict.ts'
import { echo } from '../victim.ts'

/** Before the handshake is over, and after it: largest body of a message, largest header and payload together. */
const HANDSHAKE = 8 * 1024
const ENVELOPE = MiB

describe('F-06 peer-supplied length trusted before a limit check', () => {
  const { world, peers, fresh, drop } = linkScene()
  let held: ReturnType<typeof heldSince>

  beforeAll(() => {
    held = heldSince()
  })

  async function unaffected(): Promise<void> {
    expect(await peers().good.peer.call(echo, 'served')).toBe('served')
    expect(held(8 * MiB)).toBeLessThan(8 * MiB)
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
    const { victim, raw } = peers()
    victim.mark()
    const stream = await raw.open(victim.address)
    stream.send(bomb(HANDSHAKE))
    expect(await verdictOf(victim, stream)).toEqual(refused('LIMIT_EXCEEDED'))
    await unaffected()
  })

  it('before the handshake: a length in a longer form than it needs: refused', async () => {
    const { victim, raw } = peers()
    victim.mark()
    const stream = await raw.open(victim.address)
    stream.send(Buffer.from([0x82, 0x00, 0x7b, 0x7d]))
    expect(await verdictOf(victim, stream)).toEqual(refused('MALFORMED'))
  })

  it.each(bombs)('in the place of the proof: %s: closed with a size error', async (_, bomb) => {
    const { victim, raw } = peers()
    victim.mark()
    const stream = await raw.open(victim.address)
    stream.send(partOf(bytesOf(helloOf(hostileKey))))
    await stream.part()
    stream.send(bomb(HANDSHAKE))
    expect(await verdictOf(victim, stream)).toEqual(refused('LIMIT_EXCEEDED'))
    await unaffected()
  })

  it('before the handshake: a message of exactly 8 KiB is accepted', async () => {
    const { victim, raw } = peers()
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
    const { victim, raw } = peers()
    victim.mark()
    const stream = await raw.open(victim.address)
    // A length that is allowed, and then everything at once, in pieces.
    stream.send(varint(HANDSHAKE))
    for (let i = 0; i < 1024 && !stream.ended; i++) stream.send(Buffer.alloc(1024, 0x20))
    const verdict = await verdictOf(victim, stream)
    expect(verdict).toMatchObject({ linked: false })
    expect(TOLD).toContain(verdict.told)
    await unaffected()
  })

  it.each(bombs)('after the handshake: %s: closed with a size error', async (_, bomb) => {
    const { victim } = peers()
    const link = await fresh()
    link.stream.send(bomb(2 * ENVELOPE))
    expect(await victim.until('link.down')).toMatchObject({ agentId: 'hostile', code: 'LIMIT_EXCEEDED' })
    await link.untilEnded()
    await unaffected()
  })

  it('after the handshake: an envelope of exactly 1 MiB is accepted, and one of a byte more is refused for its size', async () => {
    const { victim } = peers()
    const link = await fresh()
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
    await drop(link)
  })

  it('after the handshake: a header over 4 KiB is refused for its size', async () => {
    const { victim } = peers()
    const link = await fresh()
    const one = link.craft({ target_capability: 'echo' })
    const header = Buffer.concat([one.header, Buffer.alloc(4097 - one.header.length, 0x20)])
    link.stream.send(
      partOf(Buffer.concat([Buffer.alloc(1), partOf(header), partOf(one.payload), one.signature, Buffer.alloc(1)])),
    )
    expect(await victim.until('envelope.refused')).toMatchObject({ code: 'LIMIT_EXCEEDED' })
    await drop(link)
  })

  it('after the handshake: a frame in pieces of one byte costs about its own size', async () => {
    const { good } = peers()
    const link = await fresh()
    const one = link.craft({ target_capability: 'echo', payload: { input: 'x'.repeat(30_000) } })
    await good.peer.call(echo, 1)
    const before = wholeMemory()
    for (let at = 0; at < one.frame.length - 1; at++) {
      link.stream.send(one.frame.subarray(at, at + 1))
      // Each of them a packet of its own.
      if (at % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await eventually(() => link.stream.stream.writableNeedsDrain === false, 'everything to be sent')
    await good.peer.call(echo, 2)
    expect(wholeMemory() - before).toBeLessThan(2 * MiB)
    link.stream.send(one.frame.subarray(-1))
    expect((await link.answerTo(one, 30_000)).header.message_type).toBe('response')
    await drop(link)
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
      link = await fresh()
    })

    it.each(cases)('%s: refused, and the link goes on', async (_, code, bytes) => {
      const { victim } = peers()
      victim.mark()
      link.stream.send(bytes(link))
      expect(await victim.until('envelope.refused')).toMatchObject({ code, from: 'hostile' })
      const next = link.request('echo', 'sound', { ordered: false })
      expect((await link.answerTo(next)).payload).toMatchObject({ output: 'sound' })
      expect(victim.served).not.toContain('broken')
    })
  })
})
