import { capability, HermesError } from '@hermes-peer/protocol'
import { type TestNetwork, testNetwork } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import type { Peer } from '../../src/api.ts'
import type { ContextRef } from '../../src/context/store.ts'

const read = capability('read', {
  description: 'Pulls what the caller refers to; tells its length, or the code it failed with.',
  input: z.object({ ref: z.unknown() }),
  output: z.union([z.number(), z.string()]),
  effects: 'none',
})

async function scene(net: TestNetwork, names: readonly string[] = ['a', 'b']) {
  for (const name of names) {
    const peer = await net.peer(name)
    peer.provide(read, async ({ ref }, ctx) => {
      const [given] = (ctx.context.refs ?? []) as unknown[]
      try {
        return ((await ctx.fetch(ref ?? given)) as { text: string }).text.length
      } catch (error) {
        return HermesError.from(error).code
      }
    })
  }
  const owner = await net.peer('owner')
  for (;;) {
    const found = await net.until(owner.find({ capability: 'read' }))
    if (found.filter(({ usable }) => usable).length === names.length) break
    await net.advance('100ms')
  }
  return owner
}

const big = { text: 'x'.repeat(900_000) }
const ask = (owner: Peer, agent: string, options: object = {}, ref: unknown = null) =>
  owner.call(read, { ref }, { agent, ...options })

describe('context by reference', () => {
  it('is pulled by whom the request reached, and by nobody else who knows the reference', async () => {
    await using net = testNetwork({ seed: 91 })
    const owner = await scene(net)
    const ref = owner.offerContext(big)
    expect(await net.until(ask(owner, 'a', { refs: [ref] }))).toBe(900_000)
    // It stays theirs.
    expect(await net.until(ask(owner, 'a', {}, ref))).toBe(900_000)
    expect(await net.until(ask(owner, 'b', {}, ref))).toBe('CONTEXT_GONE')
    expect(await net.until(ask(owner, 'b', { refs: [ref] }))).toBe(900_000)
  })

  it('in a task it is pulled from the owner while that is there, and lives', async () => {
    await using net = testNetwork({ seed: 94 })
    let mayGo = (): void => undefined
    const owner = await scene(net)
    const submit = (agent: string, refs: readonly ContextRef[] = [], ref: unknown = null) =>
      net.until(owner.submit(read, { ref }, { agent, refs }))
    const ref = owner.offerContext(big)
    expect(await net.until((await submit('a', [ref])).result())).toBe(900_000)
    expect(await net.until((await submit('b', [], ref)).result())).toBe('CONTEXT_GONE')
    const gate = new Promise<void>((resolve) => {
      mayGo = resolve
    })
    const late = capability('late', { description: 'Pulls later.', input: z.unknown(), output: z.unknown() })
    const codes: string[] = []
    ;(await net.peer('b')).provide(late, async (given, ctx) => {
      await gate
      await ctx.fetch(given).catch((error: unknown) => codes.push(HermesError.from(error).code))
      return null
    })
    await net.advance('100ms')
    await net.until(owner.submit(late, ref, { agent: 'b', refs: [ref] }))
    await net.crash('owner')
    mayGo()
    await net.advance('30s')
    expect(codes).toEqual(['PEER_UNREACHABLE'])
  })

  it('can be meant for named agents from the start; ends when withdrawn and with its time', async () => {
    await using net = testNetwork({ seed: 92 })
    const owner = await scene(net)
    const [one, other] = [
      owner.offerContext(big, { agents: ['a'] }),
      owner.offerContext(big, { agents: ['a'], ttlMs: 2000 }),
    ]
    expect(await net.until(ask(owner, 'a', {}, one))).toBe(900_000)
    expect(await net.until(ask(owner, 'a', {}, other))).toBe(900_000)
    owner.withdrawContext(one)
    await net.advance('2s')
    expect(await net.until(ask(owner, 'a', {}, one))).toBe('CONTEXT_GONE')
    expect(await net.until(ask(owner, 'a', {}, other))).toBe('CONTEXT_GONE')
  })

  it('a reference that names another owner than the caller, or is none, makes nobody be asked', async () => {
    await using net = testNetwork({ seed: 93 })
    const owner = await scene(net)
    const ref = owner.offerContext(big, { agents: ['a'] })
    for (const wrong of [{ ...ref, agent_id: 'b' }, { ...ref, ref: 'x' }, 'text', 5, {}])
      expect(await net.until(ask(owner, 'a', {}, wrong))).toBe('INVALID_PAYLOAD')
  })

  it('is pulled by whom a streaming call reached', async () => {
    await using net = testNetwork({ seed: 97 })
    const pieces = capability('pieces', {
      description: 'Pulls what the caller refers to, piece by piece.',
      input: z.null(),
      yields: z.number(),
      output: z.number(),
      effects: 'none',
    })
    const a = await net.peer('a')
    a.provide(pieces, async function* (_, ctx) {
      yield 1
      return ((await ctx.fetch((ctx.context.refs as unknown[])[0])) as { text: string }).text.length
    })
    const owner = await net.peer('owner')
    await net.advance('2s')
    const stream = owner.stream(pieces, null, { refs: [owner.offerContext(big)] })
    const read = async () => {
      for await (const piece of stream) expect(piece).toBe(1)
      return stream.result
    }
    expect(await net.until(read())).toBe(900_000)
  })

  it('survives a lost link', async () => {
    await using net = testNetwork({ seed: 94 })
    const owner = await scene(net, ['a'])
    const ref = owner.offerContext(big)
    net.faults.cut(net.peerId('a'), net.peerId('owner'))
    expect(await net.until(ask(owner, 'a', { refs: [ref] }))).toBe(900_000)
  })

  it('over the bounds it is refused where it is offered: each over one answer, 16 MiB in all', async () => {
    await using net = testNetwork({ seed: 95 })
    const owner = await scene(net, ['a'])
    expect(() => owner.offerContext('x'.repeat(1024 * 1024))).toThrow('it must fit into one answer')
    const most = 'x'.repeat(1_000_000)
    const refs = Array.from({ length: 16 }, () => owner.offerContext(most))
    expect(() => owner.offerContext(most)).toThrow(expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }))
    owner.withdrawContext(refs[0] as (typeof refs)[number])
    owner.offerContext(most)
    // The largest that may be offered does travel.
    const room = 1024 * 1024 - 1536 - 256
    owner.withdrawContext(refs[1] as (typeof refs)[number])
    owner.withdrawContext(refs[2] as (typeof refs)[number])
    const largest = owner.offerContext({ text: 'x'.repeat(room - 11) })
    expect(largest.size).toBe(room)
    expect(await net.until(ask(owner, 'a', { refs: [largest] }))).toBe(room - 11)
  })

  it.each([
    [{ refs: 'x' }, 'refs'],
    [{ refs: [{}] }, 'refs'],
    [{ refs: [], context: { refs: 1 } }, 'context.refs'],
  ])('options of %j are refused by the name of the field', async (options, field) => {
    await using net = testNetwork({ seed: 96 })
    const owner = await scene(net, ['a'])
    await expect(ask(owner, 'a', options)).rejects.toMatchObject({ code: 'INVALID_OPTION', details: { field } })
    expect(() => owner.offerContext(1, { ttlMs: 15 * 60_000 + 1 })).toThrow(
      expect.objectContaining({ details: { field: 'ttlMs' } }),
    )
  })
})
