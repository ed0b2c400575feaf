import { createHash, randomBytes } from 'node:crypto'
import { type AnyEvent, capability, type EventOf, type Peer } from 'hermes-peer'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { createTeam } from '../calls/support/team.ts'

const MiB = 1024 * 1024
/** A call of the largest payloads, on a busy machine; its test waits for it to end. */
const CALL_MS = 120_000
const PATIENCE_MS = CALL_MS + 30_000
const echo = capability('echo', { description: 'Echoes.', input: z.string(), output: z.string(), effects: 'none' })
const digest = capability('digest', {
  description: 'The SHA-256 of a text, piece by piece.',
  input: z.object({ text: z.string() }),
  output: z.string(),
  yields: z.number(),
  effects: 'none',
})
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
/** A text of so many bytes that no compression or constant would stand for. */
const textOf = (bytes: number) =>
  randomBytes(Math.ceil((bytes * 3) / 4))
    .toString('base64')
    .slice(0, bytes)
/** What stands around the text in a payload: `{"input":""}`, and `{"output":"","status":"completed"}`. */
const AROUND = 40

const team = createTeam()
let provider: Peer
let desk: Peer
const events: Record<'provider' | 'desk', AnyEvent[]> = { provider: [], desk: [] }
const of = <K extends AnyEvent['type']>(who: 'provider' | 'desk', type: K) =>
  events[who].filter((event): event is EventOf<K> & AnyEvent => event.type === type)

beforeAll(async () => {
  provider = await team.start('provider', (peer) =>
    peer
      .provide(echo, (text) => text)
      .provide(digest, async function* ({ text }) {
        yield text.length
        return sha256(text)
      }),
  )
  desk = await team.start('desk')
  provider.events.onAny((event) => void events.provider.push(event))
  desk.events.onAny((event) => void events.desk.push(event))
  await desk.manifest('provider')
})
afterAll(() => team.stop())

const clear = () => {
  events.desk.length = 0
  events.provider.length = 0
}

describe('a payload that no envelope holds', () => {
  it.each([
    ['1 MB', 1_000_000, 0],
    ['1 MiB and a byte', MiB + 1, 2],
    ['the most there is', 64 * MiB - AROUND, 2],
  ])(
    '%s there and back is the same, with its progress told on both sides',
    async (_, size, streams) => {
      clear()
      const text = textOf(size)
      const back = await desk.call(echo, text, { timeoutMs: CALL_MS })
      expect(back.length).toBe(size)
      expect(sha256(back)).toBe(sha256(text))
      expect(of('desk', 'stream.opened')).toHaveLength(streams)
      if (streams === 0) return
      for (const who of ['desk', 'provider'] as const) {
        for (const direction of ['in', 'out']) {
          const progress = of(who, 'payload.progress').filter((event) => event.direction === direction)
          expect(progress.at(-1)?.bytes).toBe(progress.at(-1)?.total)
          expect(progress.at(-1)?.total).toBeGreaterThan(size)
          expect(progress.length).toBeGreaterThanOrEqual(Math.floor(size / MiB) - 1)
          expect(progress.map(({ bytes }) => bytes)).toEqual(progress.map(({ bytes }) => bytes).sort((a, b) => a - b))
        }
      }
      expect(of('desk', 'call.attempt')).toHaveLength(1)
      expect(of('desk', 'link.down')).toEqual([])
    },
    PATIENCE_MS,
  )

  it('goes in front of a streaming call too', async () => {
    const text = textOf(3 * MiB)
    const stream = desk.stream(digest, { text })
    const pieces: number[] = []
    for await (const piece of stream) pieces.push(piece)
    expect(pieces).toEqual([3 * MiB])
    expect(await stream.result).toBe(sha256(text))
  })

  it('of 64 MiB and a byte is refused before anything is sent', async () => {
    clear()
    const text = 'x'.repeat(64 * MiB + 1 - '{"input":""}'.length)
    await expect(desk.call(echo, text)).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      retryable: false,
      details: { limit: 64 * MiB },
    })
    expect(of('desk', 'envelope.sent').filter(({ messageType }) => messageType === 'request')).toEqual([])
    expect(of('desk', 'stream.opened')).toEqual([])
  })

  it(
    'holds up no other call on the same link',
    async () => {
      const large = desk.call(echo, textOf(16 * MiB), { timeoutMs: CALL_MS })
      let small = 0
      let over = false
      const ended = large.finally(() => {
        over = true
      })
      while (!over) {
        expect(await desk.call(echo, 'small')).toBe('small')
        small++
      }
      await ended
      expect(small).toBeGreaterThan(5)
    },
    PATIENCE_MS,
  )

  it('leaves no stream open', async () => {
    clear()
    await desk.call(echo, textOf(2 * MiB))
    const open = () => of('desk', 'stream.opened').length - of('desk', 'stream.ended').length
    await expect.poll(open, { timeout: 10_000 }).toBe(0)
    expect(of('desk', 'stream.ended').map(({ code }) => code)).toEqual(['OK', 'OK'])
  })
})
