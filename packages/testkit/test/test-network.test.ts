import { capability } from 'hermes-peer'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type TestNetwork, testNetwork } from '../src/index.ts'

const codeReview = capability('code_review', {
  description: 'Reviews one file.',
  input: z.object({ file: z.string() }),
  output: z.object({ findings: z.array(z.string()) }),
  effects: 'none',
})
const input = { file: '购物车.ts' }
let net: TestNetwork

afterEach(() => net[Symbol.asyncDispose]())

describe('a network for one’s own agents under test', () => {
  test('an agent that crashes is replaced within the call, in virtual time', async () => {
    net = testNetwork({ seed: 7 })
    for (const id of ['a', 'b']) {
      const peer = await net.peer(id)
      peer.provide(codeReview, async () => {
        await net.sleep('5s')
        return { findings: [id] }
      })
    }
    const pending = (await net.peer('pm')).call(codeReview, input)
    await net.advance('1s')
    const first = net.calls(codeReview)[0]?.to as string
    await net.crash(first)
    await net.advance('9s')
    expect(await pending).toEqual({ findings: [first === 'a' ? 'b' : 'a'] })
    expect(net.calls(codeReview).map(({ attempt }) => attempt)).toEqual([1, 2])
  })

  test('an agent that comes back is a new life: it is found again, and its memory is empty', async () => {
    net = testNetwork({ seed: 8 })
    const provide = async () => {
      const peer = await net.peer('a')
      peer.provide(codeReview, async () => ({ findings: [] }))
    }
    const pm = await net.peer('pm')
    await provide()
    expect(await net.until(pm.call(codeReview, input))).toEqual({ findings: [] })
    await net.crash('a')
    await net.advance('1s')
    await provide()
    await net.advance('2s')
    expect(await net.until(pm.call(codeReview, input))).toEqual({ findings: [] })
  })

  test('refuses what cannot be: the same agent twice, a crash of nobody', async () => {
    net = testNetwork()
    await net.peer('a')
    expect(() => net.launch('a')).toThrow(expect.objectContaining({ code: 'DUPLICATE_AGENT' }))
    await expect(net.crash('nobody')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect(() => net.launch('A b')).toThrow(expect.objectContaining({ code: 'INVALID_NAME' }))
  })
})
