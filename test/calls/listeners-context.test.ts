import { capability } from '@hermes-peer/protocol'
import { testNetwork } from '@hermes-peer/testkit'
import { expect, it } from 'vitest'
import { z } from 'zod'

const contract = (name: string) =>
  capability(name, { description: 'Gives back what it got.', input: z.any(), output: z.any(), effects: 'none' })

it('what a listener calls is no part of a handler that caused the link, long after that has ended', async () => {
  await using net = testNetwork({ seed: 3 })
  const [start, echo] = [contract('start'), contract('echo')]
  const a = await net.peer('a')
  const b = await net.peer('b')
  const c = await net.until(net.launch('c', (peer) => peer.provide(echo, (input) => input), { bootstrap: [] }))
  const links: string[] = []
  a.events.on('link.up', ({ agentId }) => links.push(agentId))
  await net.advance('3s')
  expect(links).not.toContain('c')
  // The first link to c is made inside this handler.
  a.provide(start, () => a.connect(c.addresses[0] as string))
  await net.advance('3s')
  expect(await net.until(b.call(start, 1, { agent: 'a', timeoutMs: 1000 }))).toBe('c')
  await net.advance('10s')
  const results: Promise<unknown>[] = []
  const traces: string[] = []
  a.events.on('call.started', ({ traceId }) => traces.push(traceId))
  a.onEvent('go', () => {
    results.push(a.call(echo, 'from a listener', { agent: 'c' }))
  })
  await net.until(c.emit({ agent: 'a', event: 'go' }, 1))
  await net.until(c.emit({ agent: 'a', event: 'go' }, 1))
  await net.advance('1s')
  expect(await net.until(Promise.all(results))).toEqual(['from a listener', 'from a listener'])
  expect(links).toContain('c')
  // Each a trace of its own.
  expect(new Set(traces).size).toBe(2)
})
