import { capability } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'

const work = capability('work', { description: 'Works.', input: z.string(), output: z.string(), effects: 'none' })

let net: TestNetwork
beforeEach(() => {
  net = testNetwork({ seed: 2 })
})
afterEach(() => net[Symbol.asyncDispose]())

const forever = () => new Promise<string>(() => undefined)
const codeOf = (error: { code?: string }) => error.code ?? 'no code'

/** A caller with one place per agent, and a provider that it knows. */
async function scene(handler: () => Promise<string>): Promise<Peer> {
  const b = await net.peer('b')
  b.provide(work, handler)
  const a = await net.peer('a', { tuning: { inFlightPerPeer: 1 } })
  await net.advance('3s')
  return a
}

/** Another provider, which comes later, so that it is not asked first. */
async function other(handler: (input: string, ctx: { signal: AbortSignal }) => Promise<string> | string) {
  const d = await net.peer('d')
  d.provide(work, handler)
  await net.advance('2s')
}

const cut = () => net.faults.cut(net.peerId('a'), net.peerId('b'), { afterBytes: 0 })

describe('a lost link', () => {
  it('takes nothing with it that had waited for a place at the agent: it goes elsewhere at once', async () => {
    const a = await scene(forever)
    const first = a.call(work, 'x', { timeoutMs: 30_000 }).catch(codeOf)
    await net.advance('100ms')
    const waiting = a.call(work, 'y', { timeoutMs: 30_000 }).catch(codeOf)
    await other((input) => input)
    await net.crash('b')
    const since = net.timeline.now()
    expect(await net.until(Promise.all([first, waiting]))).toEqual(['x', 'y'])
    expect(net.timeline.now() - since).toBeLessThan(10_000)
  })

  it('that breaks a second time does not cost the place that the call has taken elsewhere by then', async () => {
    const a = await scene(forever)
    const call = a.call(work, 'slow', { timeoutMs: 30_000 }).catch(codeOf)
    await net.advance('500ms')
    await other((input) => (input === 'quick' ? input : forever()))
    cut()
    await net.advance('10s')
    cut()
    expect(await net.until(call)).toBe('TIMEOUT')
    expect(await net.until(a.call(work, 'quick', { agent: 'd', timeoutMs: 5_000 }))).toBe('quick')
  })

  it('whose work is answered after all ends what was begun elsewhere meanwhile', async () => {
    let finish = (_: string): void => undefined
    const a = await scene(() => new Promise((resolve) => (finish = resolve)))
    const call = a.call(work, 'x', { timeoutMs: 30_000 })
    await net.advance('500ms')
    let reason: unknown
    await other((_, { signal }) => {
      signal.addEventListener('abort', () => (reason = signal.reason))
      return forever()
    })
    cut()
    await net.advance('1s')
    finish('from b')
    expect(await net.until(call)).toBe('from b')
    await net.advance('1s')
    expect(reason).toMatchObject({ code: 'CANCELLED' })
  })
})
