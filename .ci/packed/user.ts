// Compiled, never run: the packed declarations must be there, and say what they say in the repository.
import { capability, createPeer, type Peer } from 'hermes-peer'
import { z } from 'zod'

const greet = capability('greet', {
  description: 'Greets somebody.',
  input: z.object({ name: z.string() }),
  output: z.object({ text: z.string() }),
})

export async function use(): Promise<string> {
  const peer: Peer = createPeer({ agentId: 'user' })
  peer.provide(greet, ({ name }) => ({ text: `Hello ${name}` }))
  // @ts-expect-error the answer of a handler is checked
  peer.provide(greet, ({ name }) => ({ txt: name }))
  // @ts-expect-error so is the input of a call
  await peer.call(greet, { nam: 'Ada' })
  // @ts-expect-error an option that does not exist
  createPeer({ agentID: 'user' })
  const { text } = await peer.call(greet, { name: 'Ada' })
  const length: number = text.length
  return text.slice(0, length)
}
