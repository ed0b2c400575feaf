import { capability } from '@hermes-peer/protocol'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Tunables } from '../../src/defaults.ts'
import { deferred, until } from '../waiting.ts'
import { rawPeer } from './raw.ts'
import { eventsOf, realPeer } from './team.ts'

const work = capability('work', { description: 'Works.', input: z.string(), output: z.string(), effects: 'none' })

/** A provider whose handlers wait for the gate, and a caller that keeps to no limit. */
async function scene(tuning: Partial<Tunables>) {
  const gate = deferred()
  const started: string[] = []
  const provider = await realPeer('provider', {
    knows: ['raw', 'other'],
    tuning,
    prepare: (peer) =>
      peer.provide(work, async (input) => {
        started.push(input)
        await gate.promise
        return input
      }),
  })
  const address = provider.addresses[0] as string
  const callers = await Promise.all(
    ['raw', 'other'].map(async (name) => {
      const raw = await rawPeer(name)
      const link = await raw.link(address)
      const ask = (input: string, more: object = {}) =>
        raw.send(link, { capability: 'work', payload: { input }, ...more })
      return { raw, link, ask }
    }),
  )
  const [one, two] = callers as [(typeof callers)[number], (typeof callers)[number]]
  return { provider, one, two, gate, started, events: eventsOf(provider) }
}

describe('a provider with more in flight than it takes', () => {
  it('answers BUSY at once, with the time to ask again, and takes the work when it comes again', async () => {
    const { one, gate, started } = await scene({ inFlightPerPeer: 2 })
    const leaves = [one.ask('1'), one.ask('2')]
    await until(() => started.length === 2)
    const busy = await one.raw.answer(one.ask('3', { messageId: 'msg_AAAAAAAAAAAAAAAA' }))
    expect(busy.payload).toMatchObject({ error_code: 'BUSY', retryable: true, retry_after_ms: expect.any(Number) })
    expect(started).toEqual(['1', '2'])
    gate.resolve()
    for (const leaf of leaves) await one.raw.answer(leaf)
    const later = await one.raw.answer(one.ask('3', { messageId: 'msg_AAAAAAAAAAAAAAAA', attempt: 2 }))
    expect(later.payload.output).toBe('3')
  })

  it('counts each caller for itself: one that floods it does not keep another out', async () => {
    const { one, two, gate, started } = await scene({ inFlightPerPeer: 2 })
    const flood = Array.from({ length: 20 }, (_, i) => one.ask(`flood ${i}`))
    const busy = () => one.raw.got.filter(({ payload }) => payload.error_code === 'BUSY')
    await until(() => busy().length === 18)
    const mine = two.ask('mine')
    await until(() => started.includes('mine'))
    gate.resolve()
    expect((await two.raw.answer(mine)).payload.output).toBe('mine')
    await Promise.all(flood.slice(0, 2).map((leaf) => one.raw.answer(leaf)))
  })

  it('has a bound for all callers together too', async () => {
    const { one, two, gate, started } = await scene({ inFlightPerPeer: 3, inFlightPerNode: 4 })
    const first = ['1', '2', '3'].map((input) => one.ask(input))
    await until(() => started.length === 3)
    const fourth = two.ask('4')
    await until(() => started.length === 4)
    expect((await two.raw.answer(two.ask('5'))).payload.error_code).toBe('BUSY')
    gate.resolve()
    await Promise.all([...first.map((leaf) => one.raw.answer(leaf)), two.raw.answer(fourth)])
    expect((await two.raw.answer(two.ask('5'))).payload.output).toBe('5')
  })

  it('keeps unfetched answers of one sender up to a bound, then takes no more work from it', async () => {
    const { one, two, gate } = await scene({ dedupIdsPerSender: 3 })
    gate.resolve()
    for (const input of ['1', '2', '3']) await one.raw.answer(one.ask(input))
    // Nothing has told the provider that its answers have arrived.
    expect((await one.raw.answer(one.ask('4'))).payload.error_code).toBe('BUSY')
    expect((await two.raw.answer(two.ask('mine'))).payload.output).toBe('mine')
  })
})

describe('what a caller should not have sent', () => {
  it('a call that would wait for itself is refused by the callee too: CALL_CYCLE with the path', async () => {
    const { one, started } = await scene({})
    const refused = await one.raw.answer(one.ask('x', { path: ['provider#work', 'raw#other'] }))
    expect(refused.payload).toMatchObject({
      error_code: 'CALL_CYCLE',
      details: { path: ['provider#work', 'raw#other', 'provider#work'] },
    })
    expect(started).toEqual([])
  })

  it('a task for what is not provided and an unknown capability are refused with their codes', async () => {
    const { one } = await scene({})
    const codes: unknown[] = []
    for (const more of [{ type: 'submit', callType: 'task', capability: 'other' }, { capability: 'other' }] as const) {
      codes.push((await one.raw.answer(one.ask('x', more))).payload.error_code)
    }
    expect(codes).toEqual(['CAPABILITY_NOT_FOUND', 'CAPABILITY_NOT_FOUND'])
  })

  it('an input that does not fit is VALIDATION_ERROR that names the place, and never reaches the handler', async () => {
    const { one, started } = await scene({})
    const refused = await one.raw.answer(one.raw.send(one.link, { capability: 'work', payload: { input: 5 } }))
    expect(refused.payload).toMatchObject({ error_code: 'VALIDATION_ERROR', retryable: false, details: { path: '' } })
    expect(started).toEqual([])
  })

  it('F-36 what a handler throws reaches the wire without stack, path or message', async () => {
    const provider = await realPeer('thrower', {
      knows: ['raw'],
      prepare: (peer) =>
        peer.provide(work, () => {
          throw Object.assign(new Error('cannot open /etc/shadow'), { path: '/etc/shadow', code: 'EACCES' })
        }),
    })
    const raw = await rawPeer('raw')
    const link = await raw.link(provider.addresses[0] as string)
    const answer = await raw.answer(raw.send(link, { capability: 'work', payload: { input: 'x' } }))
    expect(answer.payload).toEqual({
      error_code: 'HANDLER_ERROR',
      error_message: expect.not.stringMatching(/shadow|\bat |node:/),
      error_source: 'tool',
      retryable: false,
    })
  })
})
