import { capability } from '@hermes-peer/protocol'
import { testNetwork } from '@hermes-peer/testkit'
import { expect, it } from 'vitest'
import { z } from 'zod'

const work = (effects: 'none' | 'once') =>
  capability('work', { description: 'Gives back what it got.', input: z.any(), output: z.any(), effects })

const ended = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'ok',
    (error: { code: string }) => error.code,
  )

const failed = (ends: readonly string[]) => ends.filter((end) => end !== 'ok')

it('a provider that stops in good order loses none of the answers that it gave last', async () => {
  await using net = testNetwork({ seed: 4 })
  const contract = work('once')
  const [a, b] = [await net.peer('a'), await net.peer('b')]
  let release = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  b.provide(contract, async (input) => {
    await gate
    return input
  })
  await net.advance('3s')
  const calls = Array.from({ length: 60 }, (_, i) => ended(a.call(contract, i, { timeoutMs: 30_000 })))
  await net.advance('500ms')
  const stopped = b.stop({ drainMs: 5000 })
  release()
  await net.until(stopped)
  expect(failed(await net.until(Promise.all(calls), { limitMs: 60_000 }))).toEqual([])
})

it('many large answers at once, more than a link keeps for itself, all arrive over that link', async () => {
  await using net = testNetwork({ seed: 6 })
  const contract = work('once')
  const tuning = { linkBufferBytes: 1024 * 1024 }
  const [a, b] = [await net.peer('a'), await net.peer('b', { tuning })]
  let release = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  b.provide(contract, async () => {
    await gate
    return 'x'.repeat(200 * 1024)
  })
  const down: unknown[] = []
  net.onEvent((_, event) => {
    if (event.type === 'link.down') down.push(event)
  })
  await net.advance('3s')
  const calls = Array.from({ length: 40 }, (_, i) => ended(a.call(contract, i, { timeoutMs: 30_000 })))
  await net.advance('500ms')
  release()
  expect(failed(await net.until(Promise.all(calls), { limitMs: 60_000 }))).toEqual([])
  expect(down).toEqual([])
})

it('a call that went into a dead link ends as its silence promises, also when another link has come up meanwhile', async () => {
  await using net = testNetwork({ seed: 7 })
  const contract = work('none')
  const other = capability('other', { description: 'Gives back.', input: z.any(), output: z.any(), effects: 'none' })
  const a = await net.until(net.launch('a', (peer) => peer.provide(contract, (input) => input)))
  const b = await net.until(net.launch('b', (peer) => peer.provide(other, (input) => input)))
  await net.advance('3s')
  expect(await net.until(a.call(other, 1))).toBe(1)
  net.faults.halfOpen(net.peerId('a'), net.peerId('b'))
  // The other side finds out first, and dials anew.
  const found = ended(b.call(contract, 1, { timeoutMs: 50_000 }))
  await net.advance('10s')
  const from = net.timeline.now()
  expect(await net.until(a.call(other, 2, { timeoutMs: 50_000 }), { limitMs: 60_000 })).toBe(2)
  expect(net.timeline.now() - from).toBeLessThan(20_000)
  expect(await net.until(found, { limitMs: 60_000 })).toBe('ok')
})
