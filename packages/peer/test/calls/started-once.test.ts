import { randomBytes } from 'node:crypto'
import { capability, newMessageId } from '@hermes-peer/protocol'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import type { Link } from '../../src/link/link.ts'
import { deferred, until } from '../waiting.ts'
import { type Got, type RawPeer, startRaw } from './raw.ts'
import { eventsOf, startReal } from './team.ts'

const work = capability('work', {
  description: 'Works.',
  input: z.object({ n: z.number() }),
  output: z.object({ run: z.number() }),
  effects: 'once',
})
const messageId = () => newMessageId((length) => new Uint8Array(randomBytes(length)))

// One provider, whose handler counts its starts and ends when told to, and two raw callers.
const state = { runs: 0, gate: deferred() }
let provider: Peer
let raw: RawPeer
let link: Link
let other: RawPeer
let otherLink: Link

beforeAll(async () => {
  provider = await startReal('provider', {
    knows: ['raw', 'other'],
    prepare: (peer) =>
      peer.provide(work, async ({ n }) => {
        const run = ++state.runs
        await state.gate.promise
        if (n < 0) throw new Error('of the handler')
        return { run }
      }),
  })
  raw = await startRaw('raw')
  other = await startRaw('other')
  link = await raw.link(provider.addresses[0] as string)
  otherLink = await other.link(provider.addresses[0] as string)
})
afterAll(() => Promise.all([provider, raw, other].map((one) => one?.stop())))
beforeEach(() => {
  state.gate.resolve()
  state.gate = deferred()
  state.runs = 0
})

const ask = (id: string, more: object = {}) =>
  raw.send(link, { messageId: id, capability: 'work', payload: { input: { n: 1 } }, ...more })
const outcome = async (id: string, more: object = {}, from = raw, over = link): Promise<Got> => {
  const input = { message_id: id, recipient_epoch: over.remote.epoch, expires_at: Date.now() + 60_000, ...more }
  return from.answer(from.send(over, { capability: 'hermes.outcome', payload: { input }, ordered: false }))
}
const output = ({ payload }: Got) => payload.output as Record<string, unknown>

describe('one start of a handler per (sender, message id)', () => {
  it('a duplicate in flight joins the first run: both attempts get the one outcome', async () => {
    const events = eventsOf(provider)
    const id = messageId()
    const first = ask(id)
    await until(() => state.runs === 1)
    const second = ask(id, { attempt: 2 })
    const third = ask(id, { attempt: 3 })
    await until(() => events.of('dedup.joined').length === 2)
    state.gate.resolve()
    const answers = await Promise.all([first, second, third].map((leaf) => raw.answer(leaf)))
    expect(answers.map(({ payload }) => payload.output)).toEqual([{ run: 1 }, { run: 1 }, { run: 1 }])
    expect(state.runs).toBe(1)
  })

  it('a finished one gets the stored outcome in a fresh answer', async () => {
    const events = eventsOf(provider)
    const id = messageId()
    state.gate.resolve()
    const first = await raw.answer(ask(id))
    const second = await raw.answer(ask(id, { attempt: 2 }))
    expect(second.payload).toEqual(first.payload)
    expect(second.header.message_id).toBe(id)
    expect(second.header.span_id).not.toBe(first.header.span_id)
    expect(state.runs).toBe(1)
    expect(events.of('dedup.stored')).toHaveLength(1)
  })

  it('a stored failure is given again, not tried again', async () => {
    state.gate.resolve()
    const fails = { payload: { input: { n: -1 } } }
    const id = messageId()
    const first = await raw.answer(ask(id, fails))
    const second = await raw.answer(ask(id, { ...fails, attempt: 2 }))
    expect([first, second].map(({ payload }) => payload.error_code)).toEqual(['HANDLER_ERROR', 'HANDLER_ERROR'])
    expect(state.runs).toBe(1)
  })

  it.each([
    ['another payload', { payload: { input: { n: 2 } } }],
    ['another capability', { capability: 'other' }],
  ])('the same id with %s is MESSAGE_CONFLICT, in flight and afterwards', async (_, more) => {
    const events = eventsOf(provider)
    const id = messageId()
    const first = ask(id)
    await until(() => state.runs === 1)
    const during = await raw.answer(ask(id, more))
    state.gate.resolve()
    await raw.answer(first)
    const after = await raw.answer(ask(id, more))
    expect([during, after].map(({ payload }) => payload.error_code)).toEqual(['MESSAGE_CONFLICT', 'MESSAGE_CONFLICT'])
    expect(state.runs).toBe(1)
    expect(events.of('dedup.conflict')).toHaveLength(2)
  })

  it('the same id of another sender is another piece of work', async () => {
    state.gate.resolve()
    const id = messageId()
    const [one, two] = await Promise.all([
      raw.answer(ask(id)),
      other.answer(other.send(otherLink, { messageId: id, capability: 'work', payload: { input: { n: 1 } } })),
    ])
    expect(new Set([one, two].map(({ payload }) => JSON.stringify(payload.output)))).toEqual(
      new Set(['{"run":1}', '{"run":2}']),
    )
  })

  it.each([
    ['VALIDATION_ERROR', { payload: { input: { n: 'one' } } }],
    ['INVALID_PAYLOAD', { payload: { inputs: 1 } }],
    ['CAPABILITY_NOT_FOUND', { capability: 'unheard-of' }],
  ])('a refusal before the start (%s) leaves no record: the same id may be started later', async (code, more) => {
    state.gate.resolve()
    const id = messageId()
    expect((await raw.answer(ask(id, more))).payload.error_code).toBe(code)
    expect((await raw.answer(ask(id, { attempt: 2 }))).payload.output).toEqual({ run: 1 })
  })
})

describe('hermes.outcome', () => {
  it('is running while the handler runs, and done with the outcome afterwards', async () => {
    const id = messageId()
    const leaf = ask(id)
    await until(() => state.runs === 1)
    expect(output(await outcome(id))).toEqual({ state: 'running' })
    state.gate.resolve()
    await raw.answer(leaf)
    expect(output(await outcome(id))).toEqual({
      state: 'done',
      outcome: { message_type: 'response', payload: { output: { run: 1 }, status: 'completed' } },
    })
  })

  it('tells a failure as done too', async () => {
    state.gate.resolve()
    const id = messageId()
    await raw.answer(ask(id, { payload: { input: { n: -1 } } }))
    const told = output(await outcome(id)) as {
      state: string
      outcome: { message_type: string; payload: { error_code: string } }
    }
    expect(told.state).toBe('done')
    expect(told.outcome.message_type).toBe('error')
    expect(told.outcome.payload.error_code).toBe('HANDLER_ERROR')
  })

  it('unseen is a promise: the id is refused from then on, and never started', async () => {
    state.gate.resolve()
    const id = messageId()
    expect(output(await outcome(id))).toEqual({ state: 'unseen' })
    const refused = await raw.answer(ask(id))
    expect(refused.payload).toMatchObject({ error_code: 'STALE_SEQUENCE', retryable: true })
    expect(output(await outcome(id)), 'and stays so').toEqual({ state: 'unseen' })
    expect(state.runs).toBe(0)
  })

  it('is unknown when another life was meant, and no journal tells of it', async () => {
    expect(output(await outcome(messageId(), { recipient_epoch: link.remote.epoch - 1 }))).toEqual({ state: 'unknown' })
  })

  it('belongs to the sender of the original: another agent learns nothing and prevents nothing', async () => {
    const [running, later] = [messageId(), messageId()]
    const leaf = ask(running)
    await until(() => state.runs === 1)
    expect(output(await outcome(running, {}, other, otherLink))).toEqual({ state: 'unseen' })
    expect(output(await outcome(later, {}, other, otherLink))).toEqual({ state: 'unseen' })
    state.gate.resolve()
    expect((await raw.answer(leaf)).payload.status).toBe('completed')
    expect((await raw.answer(ask(later))).payload.status).toBe('completed')
  })

  it.each([
    ['without an id', { message_id: undefined }],
    ['with an id that is none', { message_id: 'msg_../../etc/passwd' }],
    ['without an epoch', { recipient_epoch: undefined }],
    ['with an expiry that is no integer', { expires_at: 1.5 }],
  ])('%s is refused', async (_, more) => {
    expect((await outcome(messageId(), more)).payload.error_code).toBe('VALIDATION_ERROR')
  })
})

describe('names of the runtime', () => {
  it('hermes.manifest tells every admitted agent who this is; nothing under hermes. stands in it', async () => {
    const answer = await raw.answer(raw.send(link, { capability: 'hermes.manifest', payload: { input: {} } }))
    const { manifest } = output(answer) as { manifest: string }
    const text = Buffer.from(manifest, 'base64url').toString('latin1')
    expect(text).toContain('"agent_id":"provider"')
    expect(text).toContain('"name":"work"')
    expect(text).not.toContain('hermes.')
    expect(provider.fingerprint).toMatch(/^sha256:/)
  })

  it('others under hermes. are not there, and say so', async () => {
    const answer = await raw.answer(raw.send(link, { capability: 'hermes.shell', payload: { input: {} } }))
    expect(answer.payload.error_code).toBe('CAPABILITY_NOT_FOUND')
  })

  it('are answered while every place is taken: they need none', async () => {
    const leaves = Array.from({ length: 20 }, () => ask(messageId()))
    await until(() => state.runs === 20)
    expect(output(await outcome(messageId()))).toEqual({ state: 'unseen' })
    state.gate.resolve()
    for (const leaf of leaves) expect((await raw.answer(leaf)).payload.status).toBe('completed')
  })
})
