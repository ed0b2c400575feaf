import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { DEFAULTS } from '../../src/defaults.ts'
import type { Link } from '../../src/link/link.ts'
import type { Channel } from '../../src/network/network.ts'
import { createStream } from '../../src/streams/stream.ts'

/** A stream whose transport takes every write, and says whether there is room for more. */
function written({ room }: { room: boolean }) {
  let writes = 0
  const channel: Partial<Channel> = {
    send: () => {
      writes++
      return room
    },
    close: async () => undefined,
    abort: () => undefined,
  }
  const { stream, closed, drained } = createStream({
    leaf: 'ab'.repeat(32),
    link: { remote: { agentId: 'reader' } } as Link,
    channel: channel as Channel,
    clock: systemClock(),
    tunables: DEFAULTS,
    flow: () => undefined,
  })
  const codes: string[] = []
  stream.onOver((error) => codes.push(error?.code ?? 'OK'))
  onTestFinished(() => drained())
  return { stream, closed, drained, codes, writes: () => writes }
}

const END = new Uint8Array(40)
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('the end of a stream', () => {
  it('was taken when its reader closes after it', async () => {
    const { stream, closed, codes } = written({ room: true })
    const ended = stream.end(END)
    await turn()
    closed()
    await ended
    expect(codes).toEqual(['OK'])
  })

  it('was taken also when its reader closes before the transport has said that there is room again', async () => {
    const { stream, closed, drained, codes } = written({ room: false })
    const ended = stream.end(END)
    await turn()
    closed()
    await ended
    drained()
    expect(codes).toEqual(['OK'])
  })

  it('was not taken when its reader is cut off, or closes before the end was written', async () => {
    const cut = written({ room: false })
    const broken = expect(cut.stream.end(END)).rejects.toMatchObject({ code: 'CALLER_GONE' })
    await turn()
    cut.closed(new Error('reset'))
    await broken
    expect(cut.codes).toEqual(['CALLER_GONE'])

    const early = written({ room: false })
    early.stream.out.data(new Uint8Array(DEFAULTS.streamWriteBytes))
    await turn()
    const waiting = expect(early.stream.end(END)).rejects.toMatchObject({ code: 'CALLER_GONE' })
    await turn()
    expect(early.writes()).toBe(1)
    early.closed()
    await waiting
    expect(early.codes).toEqual(['CALLER_GONE'])
  })
})
