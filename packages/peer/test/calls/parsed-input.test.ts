import { capability } from '@hermes-peer/protocol'
import { testNetwork } from '@hermes-peer/testkit'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'

const text = z.string()
const refined = text.refine(async () => true)
const bytesOf = (from: string) => new Uint8Array(Buffer.from(from))
const trap = () => ({
  get inner(): never {
    throw new Error('do not look')
  },
})

async function length(schema: z.ZodType<unknown, string>, handler: (input: unknown) => number) {
  await using net = testNetwork({ seed: 8 })
  const work = capability('work', { description: 'Works.', input: schema, output: z.number(), effects: 'none' })
  const b = await net.peer('b')
  b.provide(work, handler)
  const a = await net.peer('a')
  await net.advance('2s')
  const ask = (): Promise<unknown> =>
    net.until(a.call(work, 'hello', { timeoutMs: 5_000 }).catch((error: { code: string }) => error.code))
  return [await ask(), await ask()]
}

describe('what a schema makes of the input', () => {
  it.each([
    ['at once', text],
    ['later', refined],
  ])('may be bytes, which nothing can freeze; made %s', async (_, schema) => {
    expect(await length(schema.transform(bytesOf), (input) => (input as Uint8Array).length)).toEqual([5, 5])
  })

  it.each([
    ['at once', text],
    ['later', refined],
  ])('ends the call with an error when it throws at being looked at; made %s', async (_, schema) => {
    // Each is answered, and none keeps a place or an id that would answer for the next.
    expect(await length(schema.transform(trap), () => 1)).toEqual(['INTERNAL', 'INTERNAL'])
  })
})
