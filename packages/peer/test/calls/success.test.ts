import { capability } from '@hermes-peer/protocol'
import { testNetwork } from '@hermes-peer/testkit'
import { expect, it } from 'vitest'
import * as z from 'zod'

it('work that runs out of time counts against the success that a provider reports', async () => {
  await using net = testNetwork({ seed: 11 })
  const work = capability('work', { description: 'Works.', input: z.any(), output: z.any(), effects: 'none' })
  const b = await net.peer('b')
  b.provide(
    work,
    (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject())),
  )
  const a = await net.peer('a')
  const other = await net.peer('other')
  await net.advance('3s')
  const score = async () => (await net.until(other.find({ capability: 'work' })))[0]?.score as number
  const before = await score()
  const code = ({ code }: { code: string }) => code
  for (let i = 0; i < 3; i++) expect(await net.until(a.call(work, i, { timeoutMs: 500 }).catch(code))).toBe('TIMEOUT')
  await net.advance('15s')
  expect(before - (await score())).toBeGreaterThan(0.05)
})
