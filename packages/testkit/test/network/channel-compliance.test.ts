import { describe, expect, it } from 'vitest'
import { channelCompliance } from '../../src/compliance/channel.ts'
import { MISTAKES, withMistake } from '../support/faulty-channel.ts'
import { memoryPair } from '../support/memory-pair.ts'

describe.each(['1', '2', '3'])('a channel of the memory network, seed %s', (seed) => {
  for (const { name, run } of channelCompliance(memoryPair(seed))) it(name, run)
})

describe('the compliance suite', () => {
  it.each(Object.entries(MISTAKES))('catches a channel that %s', async (_, mistake) => {
    const failed: string[] = []
    for (const { name, run } of channelCompliance(memoryPair(1, (channel) => withMistake(channel, mistake)))) {
      await run().catch(() => failed.push(name))
    }
    expect(failed).not.toEqual([])
  })
})
