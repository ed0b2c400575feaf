import { randomBytes } from 'node:crypto'
import { capability, newMessageId } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { type Got, rawPeer } from './raw.ts'
import { deferred, realPeer, until } from './team.ts'

const work = capability('work', { description: 'Works.', input: z.any(), output: z.any(), effects: 'once' })
const messageId = () => newMessageId((length) => new Uint8Array(randomBytes(length)))

async function scene() {
  const state = { runs: 0, gate: deferred() }
  const provider = await realPeer('provider', {
    knows: ['raw', 'other'],
    prepare: (peer) =>
      peer.provide(work, async (input) => {
        state.runs++
        await state.gate.promise
        if (input === 'fail') throw new Error('of the handler')
        return { did: input }
      }),
  })
  const raw = await rawPeer('raw')
  const link = await raw.link(provider.addresses[0] as string)
  const start = (id: string, input: unknown = 'x') =>
    raw.send(link, { messageId: id, capability: 'work', payload: { input } })
  const outcome = async (id: string, more: object = {}, from = raw, over = link): Promise<Got> => {
    const input = { message_id: id, recipient_epoch: over.remote.epoch, expires_at: Date.now() + 60_000, ...more }
    return from.answer(from.send(over, { capability: 'hermes.outcome', payload: { input }, ordered: false }))
  }
  return { provider, raw, link, start, outcome, state }
}
const output = ({ payload }: Got) => payload.output as Record<string, unknown>

describe('hermes.outcome', () => {
  it('is running while the handler runs, and done with the outcome afterwards', async () => {
    const { raw, start, outcome, state } = await scene()
    const id = messageId()
    const leaf = start(id)
    await until(() => state.runs === 1)
    expect(output(await outcome(id))).toEqual({ state: 'running' })
    state.gate.resolve()
    await raw.answer(leaf)
    expect(output(await outcome(id))).toEqual({
      state: 'done',
      outcome: { message_type: 'response', payload: { output: { did: 'x' }, status: 'completed' } },
    })
  })

  it('tells a failure as done too', async () => {
    const { raw, start, outcome, state } = await scene()
    state.gate.resolve()
    const id = messageId()
    await raw.answer(start(id, 'fail'))
    const told = output(await outcome(id)) as {
      state: string
      outcome: { message_type: string; payload: { error_code: string } }
    }
    expect(told.state).toBe('done')
    expect(told.outcome.message_type).toBe('error')
    expect(told.outcome.payload.error_code).toBe('HANDLER_ERROR')
  })

  it('unseen is a promise: the id is refused from then on, and never started', async () => {
    const { raw, start, outcome, state } = await scene()
    state.gate.resolve()
    const id = messageId()
    expect(output(await outcome(id))).toEqual({ state: 'unseen' })
    const refused = await raw.answer(start(id))
    expect(refused.payload).toMatchObject({ error_code: 'STALE_SEQUENCE', retryable: true })
    expect(output(await outcome(id)), 'and stays so').toEqual({ state: 'unseen' })
    expect(state.runs).toBe(0)
  })

  it('is unknown when another life was meant, and no journal tells of it', async () => {
    const { outcome, link } = await scene()
    expect(output(await outcome(messageId(), { recipient_epoch: link.remote.epoch - 1 }))).toEqual({ state: 'unknown' })
  })

  it('belongs to the sender of the original: another agent learns nothing and prevents nothing', async () => {
    const { provider, raw, start, outcome, state } = await scene()
    const other = await rawPeer('other')
    const otherLink = await other.link(provider.addresses[0] as string)
    const [running, later] = [messageId(), messageId()]
    const leaf = start(running)
    await until(() => state.runs === 1)
    expect(output(await outcome(running, {}, other, otherLink))).toEqual({ state: 'unseen' })
    expect(output(await outcome(later, {}, other, otherLink))).toEqual({ state: 'unseen' })
    state.gate.resolve()
    expect((await raw.answer(leaf)).payload.status).toBe('completed')
    expect((await raw.answer(start(later))).payload.status).toBe('completed')
  })

  it.each([
    ['without an id', { message_id: undefined }],
    ['with an id that is none', { message_id: 'msg_../../etc/passwd' }],
    ['without an epoch', { recipient_epoch: undefined }],
    ['with an expiry that is no integer', { expires_at: 1.5 }],
  ])('%s is refused', async (_, more) => {
    const { outcome } = await scene()
    expect((await outcome(messageId(), more)).payload.error_code).toBe('VALIDATION_ERROR')
  })
})

describe('names of the runtime', () => {
  it('hermes.manifest tells every admitted agent who this is; nothing under hermes. stands in it', async () => {
    const { provider, raw, link } = await scene()
    const answer = await raw.answer(raw.send(link, { capability: 'hermes.manifest', payload: { input: {} } }))
    const { manifest } = output(answer) as { manifest: string }
    const text = Buffer.from(manifest, 'base64url').toString('latin1')
    expect(text).toContain('"agent_id":"provider"')
    expect(text).toContain('"name":"work"')
    expect(text).not.toContain('hermes.')
    expect(provider.fingerprint).toMatch(/^sha256:/)
  })

  it('others under hermes. are not there, and say so', async () => {
    const { raw, link } = await scene()
    const answer = await raw.answer(raw.send(link, { capability: 'hermes.shell', payload: { input: {} } }))
    expect(answer.payload.error_code).toBe('CAPABILITY_NOT_FOUND')
  })

  it('are answered while every place is taken: they need none', async () => {
    const { raw, start, outcome, state } = await scene()
    for (let i = 0; i < 20; i++) start(messageId())
    await until(() => state.runs === 20)
    expect(output(await outcome(messageId()))).toEqual({ state: 'unseen' })
    state.gate.resolve()
    await until(() => raw.got.filter(({ header }) => header.message_type === 'response').length === 21)
  })
})
