import { randomBytes } from 'node:crypto'
import { capability, newMessageId } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Tunables } from '../../src/defaults.ts'
import { deferred, until } from '../waiting.ts'
import { type RawPeer, rawPeer } from './raw.ts'
import { eventsOf, realPeer } from './team.ts'

const work = capability('work', { description: 'Works.', input: z.any(), output: z.any(), effects: 'none' })
const messageId = () => newMessageId((length) => new Uint8Array(randomBytes(length)))

/** A provider whose handler tells when its signal fires, and goes on until told to end. */
async function scene(tuning: Partial<Tunables> = {}) {
  const state = { runs: 0, reasons: [] as unknown[], gate: deferred() }
  const provider = await realPeer('provider', {
    knows: ['raw', 'third'],
    tuning,
    prepare: (peer) =>
      peer.provide(work, async (_, { signal }) => {
        state.runs++
        signal.addEventListener('abort', () => state.reasons.push((signal.reason as { code?: string }).code))
        await state.gate.promise
        return 'done'
      }),
  })
  const raw = await rawPeer('raw')
  const address = provider.addresses[0] as string
  const link = await raw.link(address)
  const start = (id: string) => raw.send(link, { messageId: id, capability: 'work', payload: { input: 1 } })
  const cancel = (from: RawPeer, over: typeof link, id: string, more: object = {}) =>
    from.send(over, {
      type: 'cancel',
      messageId: id,
      payload: { message_id: id, expires_at: Date.now() + 30_000, ...more },
    })
  return { provider, raw, address, link, start, cancel, state, events: eventsOf(provider) }
}

describe('F-18 handler keeps running after the caller is gone', () => {
  it('(d) a cancel that comes over a new connection of the same peer finds the running call', async () => {
    const { raw, address, link, start, cancel, state } = await scene()
    const id = messageId()
    start(id)
    await until(() => state.runs === 1)
    const second = await raw.link(address)
    expect(second).not.toBe(link)
    cancel(raw, second, id)
    await until(() => state.reasons.length === 1, 'the abort', 10_000)
    expect(state.reasons).toEqual(['CANCELLED'])
  })

  it('(d) the loss of one of two links is no disconnect', async () => {
    const { raw, address, link, start, state, events } = await scene()
    const id = messageId()
    const leaf = start(id)
    await until(() => state.runs === 1)
    await raw.link(address)
    link.destroy(new Error('lost') as never)
    await until(() => events.of('link.down').length === 1)
    expect(events.of('link.down')[0]?.last).toBe(false)
    state.gate.resolve()
    expect((await raw.answer(leaf)).payload.output).toBe('done')
    expect(state.reasons).toEqual([])
  })

  it('(e) a cancel that comes before its request: it never runs', async () => {
    const { raw, link, start, cancel, state } = await scene()
    const id = messageId()
    cancel(raw, link, id)
    const refused = await raw.answer(start(id))
    expect(refused.payload).toMatchObject({ error_code: 'STALE_SEQUENCE' })
    // Whatever was sent before on this link has been handled by now.
    state.gate.resolve()
    await raw.answer(start(messageId()))
    expect(state.runs).toBe(1)
  })

  it('(f) a cancel of a third peer changes nothing', async () => {
    const { raw, address, link, start, cancel, state, events } = await scene()
    const third = await rawPeer('third')
    const thirdLink = await third.link(address)
    const id = messageId()
    const leaf = start(id)
    await until(() => state.runs === 1)
    cancel(third, thirdLink, id)
    // The answer to a later request of the third shows that its cancel has been handled.
    state.gate.resolve()
    await third.answer(third.send(thirdLink, { capability: 'work', payload: { input: 1 } }))
    expect((await raw.answer(leaf)).payload.output).toBe('done')
    expect(state.reasons).toEqual([])
    expect(events.of('handler.cancelled')).toEqual([])
    expect(link.state).toBe('open')
  })

  it('a cancel of what has ended, and one twice, harm nobody', async () => {
    const { raw, link, start, cancel, state } = await scene()
    state.gate.resolve()
    const id = messageId()
    await raw.answer(start(id))
    cancel(raw, link, id)
    cancel(raw, link, id)
    expect((await raw.answer(start(messageId()))).payload.output).toBe('done')
    expect(state.reasons).toEqual([])
  })

  it('a disconnected caller’s work is aborted once its grace is over', async () => {
    const { link, start, state } = await scene({ callerGraceMs: 200 })
    start(messageId())
    await until(() => state.runs === 1)
    link.destroy(new Error('gone') as never)
    await until(() => state.reasons.length === 1, 'the abort', 5000)
    expect(state.reasons).toEqual(['CALLER_GONE'])
  })

  it('a caller that is back within its grace finds its work going on', async () => {
    const { raw, address, link, start, state, events } = await scene({ callerGraceMs: 20_000 })
    const id = messageId()
    start(id)
    await until(() => state.runs === 1)
    link.destroy(new Error('gone') as never)
    await until(() => events.of('link.down').length === 1)
    const again = await raw.link(address)
    const leaf = raw.send(again, { messageId: id, attempt: 2, capability: 'work', payload: { input: 1 } })
    await until(() => events.of('dedup.joined').length === 1)
    state.gate.resolve()
    expect((await raw.answer(leaf)).payload.output).toBe('done')
    expect(state.runs).toBe(1)
    expect(state.reasons).toEqual([])
  })
})
