import { getEventListeners } from 'node:events'
import { testNetwork } from '@hermes-peer/testkit'
import { expect, it } from 'vitest'

it('a signal that serves many events keeps no listener of those that are sent', async () => {
  await using net = testNetwork({ seed: 7 })
  const a = await net.peer('a')
  await net.peer('b')
  const { signal } = new AbortController()
  for (let i = 0; i < 3; i++) await net.until(a.emit({ agent: 'b', event: 'x' }, i, { signal }))
  expect(getEventListeners(signal, 'abort')).toEqual([])
})
