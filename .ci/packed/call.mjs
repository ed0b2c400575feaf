// Two peers of the packed packages, in plain Node: one finds the other by capability and calls it.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { isCapability } from '@hermes-peer/protocol'
import { capability, createPeer } from 'hermes-peer'
import { z } from 'zod'

const greet = capability('greet', {
  description: 'Greets somebody.',
  input: z.object({ name: z.string() }),
  output: z.object({ text: z.string() }),
  effects: 'none',
})
// Both packages must see the same contract: one copy of the protocol, or brands that hold across copies.
assert.ok(isCapability(greet))

assert.ok(Object.keys(await import('@hermes-peer/testkit')).length > 0)

const folder = join(import.meta.dirname, 'private')
const provider = createPeer({ agentId: 'provider', folder }).provide(greet, ({ name }) => ({ text: `Hello, ${name}!` }))
const caller = createPeer({ agentId: 'caller', folder })
try {
  await provider.start()
  await caller.start()
  const { text } = await caller.call(greet, { name: 'Zoë 你好' }, { timeoutMs: 20_000 })
  assert.equal(text, 'Hello, Zoë 你好!')
  console.log('two packed peers called each other')
} finally {
  await caller.stop()
  await provider.stop()
}
