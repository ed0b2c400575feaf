import { randomBytes } from 'node:crypto'
import { capability, newMessageId } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Handler } from '../../src/api.ts'
import { rawPeer } from './raw.ts'
import { deferred, eventsOf, realPeer, until } from './team.ts'

const work = capability('work', {
  description: 'Works.',
  input: z.object({ n: z.number() }),
  output: z.object({ run: z.number() }),
  effects: 'once',
})
const messageId = () => newMessageId((length) => new Uint8Array(randomBytes(length)))

/** A provider whose handler counts its starts and ends when told to, and a raw caller with a link to it. */
async function scene(handler?: Handler<typeof work>) {
  const state = { runs: 0, gate: deferred() }
  const provider = await realPeer('provider', {
    knows: ['raw', 'other'],
    prepare: (peer) =>
      peer.provide(
        work,
        handler ??
          (async () => {
            const run = ++state.runs
            await state.gate.promise
            return { run }
          }),
      ),
  })
  const raw = await rawPeer('raw')
  const link = await raw.link(provider.addresses[0] as string)
  const ask = (id: string, more: object = {}) =>
    raw.send(link, { messageId: id, capability: 'work', payload: { input: { n: 1 } }, ...more })
  return { provider, raw, link, ask, state, events: eventsOf(provider) }
}

describe('one start of a handler per (sender, message id)', () => {
  it('a duplicate in flight joins the first run: both attempts get the one outcome', async () => {
    const { raw, ask, state, events } = await scene()
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
    const { raw, ask, state, events } = await scene()
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
    const { raw, ask, state } = await scene(async () => {
      state.runs++
      throw new Error('of the handler')
    })
    const id = messageId()
    const first = await raw.answer(ask(id))
    const second = await raw.answer(ask(id, { attempt: 2 }))
    expect([first, second].map(({ payload }) => payload.error_code)).toEqual(['HANDLER_ERROR', 'HANDLER_ERROR'])
    expect(state.runs).toBe(1)
  })

  it.each([
    ['another payload', { payload: { input: { n: 2 } } }],
    ['another capability', { capability: 'other' }],
  ])('the same id with %s is MESSAGE_CONFLICT, in flight and afterwards', async (_, more) => {
    const { raw, ask, state, events } = await scene()
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
    const { provider, raw, ask, state } = await scene()
    state.gate.resolve()
    const other = await rawPeer('other')
    const id = messageId()
    const otherLink = await other.link(provider.addresses[0] as string)
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
    const { raw, ask, state } = await scene()
    state.gate.resolve()
    const id = messageId()
    expect((await raw.answer(ask(id, more))).payload.error_code).toBe(code)
    expect((await raw.answer(ask(id, { attempt: 2 }))).payload.output).toEqual({ run: 1 })
  })
})
