import { expect, it } from 'vitest'
import { served } from '../../src/calls/context.ts'
import { detached } from '../../src/network/detached.ts'
import type { Channel, ChannelListener, Network } from '../../src/network/network.ts'
import { createOutside } from '../../src/outside.ts'

it('what comes over a channel that a handler has opened does not run inside of that handler', async () => {
  const contexts: unknown[] = []
  const note = () => void contexts.push(served.getStore())
  let listener: ChannelListener | undefined
  const channel = {
    listen: (given: ChannelListener) => {
      listener = given
    },
  } as unknown as Channel
  const open = async () => {
    note()
    return channel
  }
  const network = detached({ open } as unknown as Network, createOutside())
  await served.run({ traceId: 'of the handler' } as never, async () => {
    const opened = await network.open({ addresses: [] }, 'protocol', { signal: new AbortController().signal })
    opened.listen({ data: note, drained: note, closed: note })
    listener?.data(new Uint8Array(1))
    listener?.drained()
    listener?.closed()
    expect(served.getStore()).toBeDefined()
  })
  expect(contexts).toEqual([undefined, undefined, undefined, undefined])
})
